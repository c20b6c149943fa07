"""ImpactTwin: does an agent that meets the same poisoned document again do the same thing?"""

__version__ = "0.1.0"
