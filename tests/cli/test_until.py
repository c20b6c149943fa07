"""`repeat --until` as a user meets it."""


def test_until_stops_early_and_says_what_the_intervals_are_worth(tool):
    rule = "attack_success >= 2%"
    done = tool("repeat", "--until", "benign_utility >= 0.7", "--trials", "40", "--out", "run")
    assert done.returncode == 0, done.stderr
    report = tool.report()
    assert report["plan"]["trials"] < 40
    assert "descriptive" in done.stdout
    again = tool("report", "run")
    assert again.returncode == 0, again.stderr
    assert again.stdout.strip() in done.stdout
    refused = tool("repeat", "--until", rule, "--out", "other")
    assert refused.returncode == 2
    assert "--until" in refused.stderr
    assert not (tool.folder / "other").exists()


def test_a_resumed_run_keeps_its_rule(tool):
    planned = tool(
        "repeat", "--until", "benign_utility >= 0.7", "--trials", "40", "--plan-only",
        "--out", "run",
    )  # fmt: skip
    assert planned.returncode == 0, planned.stderr
    refused = tool("repeat", "--resume", "run", "--until", "benign_utility >= 0.1")
    assert refused.returncode == 2
    assert tool("repeat", "--resume", "run", "--quiet").returncode == 0
    report = tool.report()
    assert report["identity"]["run"]["until"] == "benign_utility >= 0.7"
    assert report["plan"]["trials"] < 40
