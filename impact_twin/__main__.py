"""`python -m impact_twin` is `impact-twin`."""

from impact_twin.cli.main import script

if __name__ == "__main__":
    script()
