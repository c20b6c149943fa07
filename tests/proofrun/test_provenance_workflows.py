"""The workflows keep their promises: who may get an identity, what is pinned, what fails last."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
SCRIPT = ROOT / ".github" / "verify_submissions.py"
PAGE = ROOT / "docs" / "provenance.md"
PIN = re.compile(r"([\w.-]+/[\w./-]+)@([0-9a-f]{40})")

if not WORKFLOWS:
    pytest.skip("an installed copy holds no workflows", allow_module_level=True)


def run(command, **options):
    return subprocess.run(command, check=False, capture_output=True, text=True, **options)


def load(name):
    return yaml.safe_load((ROOT / ".github" / "workflows" / name).read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def jobs():
    return load("proofrun.yml")["jobs"]


def uses(job):
    return [step["uses"] for step in job.get("steps", []) if "uses" in step]


def scripts(job):
    return [step["run"] for step in job.get("steps", []) if "run" in step]


def permissions(job):
    return job["permissions"]


def tool(name):
    beside = Path(sys.executable).with_name(name)
    found = str(beside) if beside.is_file() else shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is not installed: the workflows are not linted")
    return found


# Every workflow


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_actions_are_pinned_by_commit_and_a_comment_says_the_version(path):
    lines = path.read_text(encoding="utf-8").splitlines()
    pinned = [(number, line) for number, line in enumerate(lines) if "uses:" in line]
    assert pinned
    for number, line in pinned:
        match = PIN.fullmatch(line.split("uses:", 1)[1].strip())
        assert match, f"{path.name}:{number + 1} is not pinned by a full commit id"
        comment = lines[number - 1].strip()
        assert re.fullmatch(rf"# {re.escape(match[1])} v\d+\.\d+\.\d+", comment), comment


def test_one_version_of_an_action_has_one_commit():
    known = {}
    for path in WORKFLOWS:
        text = path.read_text(encoding="utf-8")
        for version, commit in re.findall(
            r"# (\S+ v\S+)\n\s+(?:- )?uses: \S+@([0-9a-f]{40})", text
        ):
            assert known.setdefault(version, commit) == commit, version
    assert len(known) >= 5


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_permissions_are_given_to_single_jobs_only(path):
    workflow = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert workflow["permissions"] == {}
    for job in workflow["jobs"].values():
        assert "permissions" in job
        assert "timeout-minutes" in job


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_no_script_holds_an_expression(path):
    workflow = yaml.safe_load(path.read_text(encoding="utf-8"))
    for job in workflow["jobs"].values():
        for script in scripts(job):
            assert "${{" not in script


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_no_checkout_keeps_a_token(path):
    workflow = yaml.safe_load(path.read_text(encoding="utf-8"))
    for job in workflow["jobs"].values():
        for step in job["steps"]:
            if step.get("uses", "").startswith("actions/checkout@"):
                assert step["with"]["persist-credentials"] is False


def test_actionlint_passes():
    lint = tool("actionlint")
    done = run([lint, "-no-color", *map(str, WORKFLOWS)], cwd=ROOT)
    assert done.returncode == 0, done.stdout + done.stderr


def test_zizmor_passes():
    done = run(
        [tool("zizmor"), "--offline", "--no-progress", ".github/workflows"],
        cwd=ROOT,
    )
    assert done.returncode == 0, done.stdout + done.stderr


# Who may do what in proofrun.yml


def test_only_plan_and_attest_may_ask_for_an_identity(jobs):
    may = {name for name, job in jobs.items() if "id-token" in permissions(job)}
    assert may == {"plan", "attest"}
    for name in may:
        assert permissions(jobs[name]) == {"id-token": "write", "attestations": "write"}
    for name in ("prepare", "evaluate", "verify"):
        assert permissions(jobs[name]) == {"contents": "read"}
    assert permissions(jobs["gate"]) == {}


@pytest.mark.parametrize("name", ["plan", "attest"])
def test_a_job_with_an_identity_checks_out_installs_and_runs_nothing(jobs, name):
    kinds = {used.split("@")[0] for used in uses(jobs[name])}
    assert kinds == {"actions/download-artifact", "actions/attest", "actions/upload-artifact"}
    allowed = re.compile(r'echo "\$DIGEST  files/\S+" \| sha256sum --check --strict|cp \S+ \S+')
    for script in scripts(jobs[name]):
        assert allowed.fullmatch(script.strip()), script


@pytest.mark.parametrize("name", ["plan", "attest"])
def test_what_is_attested_was_compared_with_a_digest_just_before(jobs, name):
    steps = jobs[name]["steps"]
    at = next(
        i for i, step in enumerate(steps) if step.get("uses", "").startswith("actions/attest@")
    )
    subject = steps[at]["with"]["subject-path"]
    assert steps[at]["with"].keys() == {"subject-path"}
    assert f'"$DIGEST  {subject}" | sha256sum --check --strict' in steps[at - 1]["run"]
    needed = "prepare.outputs.plan-digest" if name == "plan" else "verify.outputs.digest"
    assert steps[at - 1]["env"]["DIGEST"] == f"${{{{ needs.{needed} }}}}"


def test_only_the_evaluation_sees_the_secret_and_only_the_step_that_runs_the_agent(jobs):
    for name, job in jobs.items():
        holders = [step for step in job["steps"] if "secrets." in json.dumps(step)]
        assert len(holders) == (1 if name == "evaluate" else 0)
    (holder,) = [s for s in jobs["evaluate"]["steps"] if "secrets." in json.dumps(s)]
    assert holder["name"] == "Run the plan"


def test_the_agents_code_is_in_no_job_that_verifies_or_attests(jobs):
    for name in ("plan", "verify", "attest", "gate"):
        text = json.dumps(jobs[name])
        assert "inputs.install" not in text
        assert "inputs.options" not in text
        for step in jobs[name]["steps"]:
            if step.get("uses", "").startswith("actions/checkout@"):
                assert step["with"]["repository"] == "${{ job.workflow_repository }}"
                assert step["with"]["ref"] == "${{ job.workflow_sha }}"


def test_every_install_is_of_this_workflows_own_commit(jobs):
    installs = [
        s for job in jobs.values() for s in job["steps"] if "pip install" in s.get("run", "")
    ]
    assert len(installs) == 3
    for step in installs:
        assert step["env"]["COMMIT"] == "${{ job.workflow_sha }}"
        first = step["run"].splitlines()[0]
        assert first == 'test "$(git -C impact-twin rev-parse HEAD)" = "$COMMIT"'


def test_the_order_of_jobs(jobs):
    needs = {name: job.get("needs", []) for name, job in jobs.items()}
    assert needs == {
        "prepare": [],
        "plan": "prepare",
        "evaluate": ["prepare", "plan"],
        "verify": ["prepare", "evaluate"],
        "attest": ["plan", "evaluate", "verify"],
        "gate": ["prepare", "plan", "evaluate", "verify", "attest"],
    }
    assert jobs["gate"]["if"] == "always()"
    assert "needs.verify.result == 'success'" in jobs["attest"]["if"]
    assert "needs.plan.result == 'skipped'" in jobs["evaluate"]["if"]
    assert "head.repo.full_name == github.repository" in jobs["plan"]["if"]


def test_files_are_handed_on_by_number(jobs):
    for job in jobs.values():
        for step in job["steps"]:
            if step.get("uses", "").startswith("actions/download-artifact@"):
                assert "artifact-ids" in step["with"]
                assert "name" not in step["with"]
                assert "pattern" not in step["with"]


# The scripts, run as the runner would


class Bench:
    """A folder in which steps of a job run, with the real command."""

    def __init__(self, folder, jobs):
        self.folder, self._jobs = folder, jobs
        (folder / "venv").mkdir()
        (folder / "venv" / "bin").symlink_to(Path(sys.executable).parent)
        (folder / "agent").mkdir()

    def step(self, job, name, **env):
        """Run one step; return its exit code, printed text and outputs."""
        (step,) = [step for step in self._jobs[job]["steps"] if step.get("name") == name]
        assert set(env) >= set(step.get("env", {})), "every variable of the step needs a value"
        output = self.folder / "output"
        output.write_text("")
        done = run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
            cwd=self.folder / step.get("working-directory", "."),
            env={"PATH": os.environ["PATH"], "HOME": str(self.folder), **env}
            | {"GITHUB_OUTPUT": str(output)},
            timeout=300,
        )
        outputs = dict(line.split("=", 1) for line in output.read_text().splitlines())
        return done.returncode, done.stdout + done.stderr, outputs


GITHUB = {
    "GITHUB_ACTIONS": "true",
    "GITHUB_SERVER_URL": "https://github.com",
    "GITHUB_REPOSITORY": "Acme/agent",
    "GITHUB_SHA": "b" * 40,
    "GITHUB_RUN_ID": "77",
    "GITHUB_RUN_ATTEMPT": "1",
}
NO_GATES = {"GATES": "", "GATES_PAIRS": "", "AGENT_KEY": "", "AGENT_KEY_NAME": "OPENAI_API_KEY"}


@pytest.fixture(scope="module")
def evaluated(tmp_path_factory, jobs):
    """A bench on which a plan was written and run, and a bundle made, by the steps themselves."""
    bench = Bench(tmp_path_factory.mktemp("bench"), jobs)
    options = "--agent=demo:wavering\n\n   --trials=1  \n--isolation=thread\n"
    code, text, planned = bench.step("prepare", "Write the plan", OPTIONS=options)
    assert code == 0, text
    bench.planned = planned["digest"]
    # The next job starts from plan.json alone.
    plan = (bench.folder / "run" / "plan.json").read_bytes()
    shutil.rmtree(bench.folder / "run")
    (bench.folder / "run").mkdir()
    (bench.folder / "run" / "plan.json").write_bytes(plan)
    gates = {**NO_GATES, "GATES": "secure_utility >= 0.1\n", "GATES_PAIRS": ""}
    code, text, bench.ran = bench.step("evaluate", "Run the plan", **gates)
    assert code == 0, text
    bench.run_text = text
    submit = {"SUBMITTER": "", "ACTOR": "octocat", "SOURCE": "", "NOTES": 'a "b" $(c)'}
    code, text, bench.made = bench.step("evaluate", "Make the bundle", **submit, **GITHUB)
    assert code == 0, text
    return bench


def test_a_plan_is_run_as_a_first_start_and_named_by_the_bundle(evaluated):
    bundle = json.loads((evaluated.folder / "bundle.json").read_bytes())
    assert bundle["digests"]["plan"] == f"sha256:{evaluated.planned}"
    run = bundle["report"]["identity"]["run"]
    assert run["resumed"] == 0
    assert run["isolation"] == "process", "the workflow's own choice comes last"
    assert bundle["report"]["plan"]["trials"] == 1
    assert bundle["submission"]["submitter"] == "@octocat"
    assert bundle["submission"]["source"] == f"https://github.com/Acme/agent/tree/{'b' * 40}"
    assert bundle["submission"]["notes"] == 'a "b" $(c)'
    assert bundle["ci"]["run_id"] == 77


def test_the_run_says_whether_its_gates_held_without_failing_the_job(evaluated):
    held = all(gate["held"] for gate in report_of(evaluated)["summary"]["gates"])
    assert evaluated.ran == {"code": "0" if held else "1"}


def report_of(bench):
    return json.loads((bench.folder / "bundle.json").read_bytes())["report"]


def test_a_failed_gate_still_gives_a_bundle(evaluated, tmp_path, jobs):
    bench = Bench(tmp_path, jobs)
    shutil.copytree(evaluated.folder / "run", bench.folder / "run")
    gates = {**NO_GATES, "GATES": "attack_success <= 0.5\n"}
    code, text, outputs = bench.step("evaluate", "Run the plan", **gates)
    assert (code, outputs["code"]) == (0, "1"), text
    submit = {"SUBMITTER": "@me", "ACTOR": "x", "SOURCE": "https://example.org/", "NOTES": ""}
    code, text, _ = bench.step("evaluate", "Make the bundle", **submit, **GITHUB)
    assert code == 0, text


def verifying(bench, jobs, tmp_path, **changed):
    other = Bench(tmp_path, jobs)
    (other.folder / "files").mkdir()
    shutil.copy(bench.folder / "bundle.json", other.folder / "files" / "bundle.json")
    env = {"DIGEST": bench.made["digest"], "PLAN_DIGEST": bench.planned, **changed}
    return other.step("verify", "Verify the bundle, and that it names this run's plan", **env)


def test_the_bundle_is_verified_and_its_digest_handed_on(evaluated, jobs, tmp_path):
    code, text, outputs = verifying(evaluated, jobs, tmp_path)
    assert code == 0, text
    assert outputs == {"digest": evaluated.made["digest"]}
    lines = text.splitlines()
    (at,) = [i for i, line in enumerate(lines) if line.startswith("::stop-commands::")]
    token = lines[at].rsplit("::", 1)[1]
    assert f"::{token}::" in lines[at + 2 :]


def test_a_bundle_of_another_plan_or_with_other_bytes_is_not_handed_on(evaluated, jobs, tmp_path):
    for number, changed in enumerate(({"PLAN_DIGEST": "0" * 64}, {"DIGEST": "0" * 64})):
        folder = tmp_path / str(number)
        folder.mkdir()
        code, _, outputs = verifying(evaluated, jobs, folder, **changed)
        assert code != 0
        assert outputs == {}


def test_what_the_jobs_make_is_pre_registered_for_who_names_them(evaluated, tmp_path):
    pytest.importorskip("sigstore")
    from provenance_forge import REPOSITORY, SIGNER, Sigstore, statement

    bundle = (evaluated.folder / "bundle.json").read_bytes()
    plan = (evaluated.folder / "run" / "plan.json").read_bytes()
    report = json.loads(bundle)["report"]
    first = min(a["started"] for t in report["pair_trials"] for a in t["clean"]["attempts"])
    instance = Sigstore()
    at = int(first) - instance.seconds(0) - 3600
    files = {
        "bundle.json": bundle,
        "bundle.sigstore.json": instance.attest(statement(bundle), at=at + 7200),
        "plan.sigstore.json": instance.attest(statement(plan, name="plan.json"), at=at),
        "root.json": instance.root(),
    }
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
    command = [sys.executable, "-m", "impact_twin", "verify", "bundle.json", "--json"]
    command += ["--attestation", "bundle.sigstore.json", "--plan-attestation", "plan.sigstore.json"]
    command += ["--trusted-root", "root.json", "--signer-workflow", SIGNER]
    for repository, code, word in (
        (REPOSITORY, 0, '"pre-registered"'),
        ("acme/agent", 1, "upper and lower case count"),
    ):
        done = run([*command, "--repository", repository], cwd=tmp_path)
        assert done.returncode == code, done.stdout + done.stderr
        assert word in done.stdout


GOOD = {
    "PREPARE": "success",
    "PLAN": "success",
    "EVALUATE": "success",
    "VERIFY": "success",
    "ATTEST": "success",
    "CODE": "0",
}


@pytest.mark.parametrize(
    ("changed", "code", "words"),
    [
        ({}, 0, ""),
        ({"PLAN": "skipped", "ATTEST": "skipped"}, 0, ""),
        ({"CODE": "1"}, 1, "A gate failed"),
        ({"CODE": "3"}, 1, "stopped before its plan ended"),
        ({"CODE": "2"}, 1, "exit code 2"),
        ({"CODE": ""}, 1, "exit code unknown"),
        ({"PREPARE": "failure"}, 1, "No plan"),
        ({"EVALUATE": "failure"}, 1, "No bundle"),
        ({"EVALUATE": "cancelled"}, 1, "No bundle"),
        ({"VERIFY": "failure", "ATTEST": "skipped"}, 1, "not verified"),
        ({"ATTEST": "failure"}, 1, "not attested"),
        ({"PLAN": "failure", "ATTEST": "skipped"}, 1, "not attested"),
        ({"ATTEST": "skipped"}, 1, "not attested"),
        ({"PLAN": "skipped"}, 1, "not attested"),
    ],
)
def test_the_gate_fails_last_and_says_why(tmp_path, jobs, changed, code, words):
    name = "Fail when a gate failed or something was not done"
    found, text, _ = Bench(tmp_path, jobs).step("gate", name, **{**GOOD, **changed})
    assert found == code
    assert words in text


def test_a_key_is_given_only_under_a_plain_name(evaluated, tmp_path, jobs):
    bench = Bench(tmp_path, jobs)
    shutil.copytree(evaluated.folder / "run", bench.folder / "run")
    for name in ("path", "A B", "A=B", "", "1A", "A;true"):
        bad = {**NO_GATES, "AGENT_KEY": "secret", "AGENT_KEY_NAME": name}
        code, text, _ = bench.step("evaluate", "Run the plan", **bad)
        assert code != 0
        assert "secret" not in text


# Submissions


class Repository:
    """A git repository with a base commit, to which a change is added."""

    def __init__(self, folder):
        self.folder = folder
        self.git("init", "-q")
        self.add("submissions/README.md", b"How to send one.\n")
        self.add("submissions/old.json", b"{}")
        self.commit("base")

    def git(self, *arguments, data=None):
        identity = ["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=0"]
        done = subprocess.run(
            ["git", "-C", str(self.folder), *identity, *arguments],
            check=True,
            input=data,
            stdout=subprocess.PIPE,
        )
        return done.stdout.decode().strip()

    def add(self, path, data, mode="100644"):
        """Put a file into the index only; its name may be one that no file system takes."""
        blob = self.git("hash-object", "-w", "--stdin", data=data)
        entry = f"{mode} {blob}\t".encode() + os.fsencode(path) + b"\0"
        self.git("update-index", "-z", "--index-info", data=entry)

    def commit(self, message):
        self.git("commit", "-q", "-m", message)

    def check(self):
        self.commit("change")
        done = run(
            [sys.executable, str(SCRIPT), str(self.folder), "HEAD^1", "HEAD"],
            timeout=300,
        )
        return done.returncode, done.stdout + done.stderr


@pytest.fixture
def repository(tmp_path):
    return Repository(tmp_path)


def test_only_what_changed_is_verified(repository, good_bytes):
    repository.add("submissions/mine.json", good_bytes)
    repository.add("README.md", b"elsewhere")
    code, text = repository.check()
    assert code == 0, text
    assert "1 submissions changed" in text
    assert "old.json" not in text


def test_a_bundle_that_does_not_hold_fails_and_the_others_are_still_verified(
    repository, good_bytes
):
    repository.add("submissions/a.json", b"{}")
    repository.add("submissions/b.json", good_bytes)
    code, text = repository.check()
    assert code == 1
    assert "== submissions/b.json" in text


@pytest.mark.parametrize(
    "name",
    [
        "submissions/a b.json",
        "submissions/\n::error::x.json",
        "submissions/\x1b[31m.json",
        "submissions/--json",
        "submissions/-a.json",
        "submissions/a;rm -rf x.json",
        "submissions/$(touch x).json",
        "submissions/\u202egpj.json",
        "submissions/\udcff.json",
        "submissions/A.json",
        "submissions/a.txt",
        "submissions/a.json.sh",
        "submissions/deep/a.json",
        "submissions/a\\b.json",
        "submissions/.json",
        "submissions/" + "a" * 200 + ".json",
    ],
)
def test_a_hostile_name_is_refused_and_shown_in_plain_ascii(repository, good_bytes, name):
    repository.add(name, good_bytes)
    code, text = repository.check()
    assert code == 1
    assert text.startswith("refused: ")
    assert text.count("\n") == 1
    assert text.strip().isprintable()
    assert text.isascii()


@pytest.mark.parametrize("mode", ["120000", "100755"])
def test_a_link_or_program_is_refused(repository, mode):
    repository.add("submissions/a.json", b"/etc/passwd", mode=mode)
    code, text = repository.check()
    assert code == 1
    assert "no plain file" in text
    assert "root:" not in text


def test_a_submodule_is_refused(repository):
    commit = repository.git("rev-parse", "HEAD")
    repository.git("update-index", "--add", "--cacheinfo", f"160000,{commit},submissions/a.json")
    code, text = repository.check()
    assert code == 1
    assert "no plain file" in text


def test_a_removed_file_is_nobodys_business(repository):
    repository.git("update-index", "--force-remove", "submissions/old.json")
    code, text = repository.check()
    assert code == 0, text
    assert "0 submissions changed" in text


def test_too_many_files_are_refused(repository):
    for number in range(21):
        repository.add(f"submissions/a{number}.json", b"{}")
    code, text = repository.check()
    assert code == 1
    assert "21 files" in text


def test_an_attestation_is_checked_against_the_bundle_beside_it(repository, good_bytes):
    pytest.importorskip("sigstore")
    genuine = (Path(__file__).parent / "data" / "provenance" / "happy.sigstore.json").read_bytes()
    repository.add("submissions/a.json", good_bytes)
    repository.add("submissions/a.sigstore.json", genuine)
    code, text = repository.check()
    assert code == 1
    assert "a.sigstore.json: failed" in text
    assert "about other bytes" in text


def test_an_attestation_without_its_bundle_is_refused(repository):
    repository.add("submissions/new.sigstore.json", b"{}")
    code, text = repository.check()
    assert code == 1
    assert "is missing" in text


def test_wrong_usage_is_said():
    done = run([sys.executable, str(SCRIPT)])
    assert done.returncode == 2


# The caller in the docs


def callers():
    text = PAGE.read_text(encoding="utf-8")
    return re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)


def test_the_caller_in_the_docs_fits_the_workflow():
    (caller,) = callers()
    (job,) = yaml.safe_load(caller)["jobs"].values()
    called = load("proofrun.yml")[True]["workflow_call"]
    assert set(job["with"]) <= set(called["inputs"])
    assert {name for name, one in called["inputs"].items() if one.get("required")} <= set(
        job["with"]
    )
    assert set(job["secrets"]) <= set(called["secrets"])
    granted = job["permissions"]
    for one in load("proofrun.yml")["jobs"].values():
        for scope, level in one["permissions"].items():
            assert granted[scope] == level


def test_the_caller_in_the_docs_passes_the_linters(tmp_path):
    (caller,) = callers()
    folder = tmp_path / ".github" / "workflows"
    folder.mkdir(parents=True)
    (folder / "caller.yml").write_text(caller)
    for command in (
        [tool("actionlint"), "-no-color", str(folder / "caller.yml")],
        [tool("zizmor"), "--offline", "--no-progress", str(folder)],
    ):
        done = run(command, cwd=tmp_path)
        assert done.returncode == 0, done.stdout + done.stderr
