"""A small Sigstore of our own: one authority, one certificate log, one transparency log.

It signs whatever a test wants, so that statements that no real instance would sign, and two
signatures of one run, can be checked by the real verifier under a trusted root of our own.
"""

import base64
import hashlib
import json
import struct
from datetime import datetime, timedelta, timezone

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from impact_twin.canonical import canonical_bytes

SHA256 = ec.ECDSA(hashes.SHA256())
ARC = "1.3.6.1.4.1.57264.1."
SCT_LIST = "1.3.6.1.4.1.11129.2.4.2"
STATEMENT = "https://in-toto.io/Statement/v1"
PREDICATE = "https://slsa.dev/provenance/v1"
IN_TOTO = "application/vnd.in-toto+json"

REPOSITORY = "https://github.com/Acme/agent"
SIGNER = "https://github.com/proof/impact-twin/.github/workflows/proofrun.yml@refs/tags/v1"
CLAIMS = {
    8: "https://token.actions.githubusercontent.com",
    9: SIGNER,
    10: "a" * 40,
    11: "github-hosted",
    12: REPOSITORY,
    13: "b" * 40,
    14: "refs/heads/main",
    15: "1001",
    17: "2002",
    18: f"{REPOSITORY}/.github/workflows/evaluate.yml@refs/heads/main",
    20: "push",
    21: f"{REPOSITORY}/actions/runs/77/attempts/1",
    22: "public",
}


def key():
    return ec.generate_private_key(ec.SECP256R1())


def spki(private):
    return private.public_key().public_bytes(
        serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    )


def key_id(private):
    return hashlib.sha256(spki(private)).digest()


def b64(data):
    return base64.b64encode(data).decode()


def utf8_string(text):
    data = text.encode()
    size = len(data)
    length = bytes([size]) if size < 128 else bytes([0x81, size]) if size < 256 else None
    return b"\x0c" + (length or b"\x82" + size.to_bytes(2, "big")) + data


def statement(artifact, *, name="bundle.json", kind=STATEMENT, predicate_type=PREDICATE, **more):
    digest = {"sha256": hashlib.sha256(artifact).hexdigest()}
    subject = [{"name": name, "digest": digest}]
    value = {"_type": kind, "subject": subject, "predicateType": predicate_type, "predicate": {}}
    return json.dumps({**value, **more}).encode()


class Sigstore:
    """An instance whose root a test may trust."""

    def __init__(self):
        self._ca_key, self._ct_key, self._log_key = key(), key(), key()
        self._start = datetime(2026, 1, 1, tzinfo=timezone.utc)
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "test authority")])
        self._name = name
        usage = x509.KeyUsage(*[False] * 5, True, *[False] * 3)
        self._ca = (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(name)
            .public_key(self._ca_key.public_key())
            .serial_number(1)
            .not_valid_before(self._start)
            .not_valid_after(self._start + timedelta(days=3650))
            .add_extension(x509.BasicConstraints(ca=True, path_length=1), critical=True)
            .add_extension(usage, critical=True)
            .add_extension(
                x509.SubjectKeyIdentifier.from_public_key(self._ca_key.public_key()), critical=False
            )
            .sign(self._ca_key, hashes.SHA256())
        )

    def root(self):
        """Return the trusted root, in JSON."""
        start = {"start": "2026-01-01T00:00:00Z"}
        details = "PKIX_ECDSA_P256_SHA_256"

        def log(private):
            public = {"rawBytes": b64(spki(private)), "keyDetails": details, "validFor": start}
            return {
                "baseUrl": "https://log.invalid",
                "hashAlgorithm": "SHA2_256",
                "publicKey": public,
                "logId": {"keyId": b64(key_id(private))},
            }

        chain = {"certificates": [{"rawBytes": b64(_der(self._ca))}]}
        authority = {
            "subject": {"organization": "test", "commonName": "test authority"},
            "uri": "https://authority.invalid",
            "certChain": chain,
            "validFor": start,
        }
        root = {
            "mediaType": "application/vnd.dev.sigstore.trustedroot+json;version=0.1",
            "tlogs": [log(self._log_key)],
            "certificateAuthorities": [authority],
            "ctlogs": [log(self._ct_key)],
            "timestampAuthorities": [],
        }
        return json.dumps(root).encode()

    def attest(self, payload, *, claims=None, at=0, identity=None, payload_type=IN_TOTO, raw=None):
        """Return a bundle over a payload, signed `at` seconds after the instance's first day.

        Args:
            payload: The envelope's content.
            claims: Extensions by number, in place of those in `CLAIMS`; None leaves one out.
            at: When it is signed.
            identity: The certificate's subject; the signer workflow when None.
            payload_type: Of the envelope.
            raw: Extensions by number, as DER.
        """
        private = key()
        when = self._start + timedelta(days=1, seconds=at)
        found = {**CLAIMS, **(claims or {})}
        encoded = {n: utf8_string(text) for n, text in found.items() if text is not None}
        certificate = self._certificate(
            private, when, identity or found[9], {**encoded, **(raw or {})}
        )
        pae = f"DSSEv1 {len(payload_type)} {payload_type} {len(payload)} ".encode() + payload
        signature = private.sign(pae, SHA256)
        entry = self._entry(certificate, payload, signature, int(when.timestamp()))
        bundle = {
            "mediaType": "application/vnd.dev.sigstore.bundle.v0.3+json",
            "verificationMaterial": {
                "certificate": {"rawBytes": b64(_der(certificate))},
                "tlogEntries": [entry],
            },
            "dsseEnvelope": {
                "payload": b64(payload),
                "payloadType": payload_type,
                "signatures": [{"sig": b64(signature)}],
            },
        }
        return json.dumps(bundle).encode()

    def seconds(self, at):
        """Return the Unix time of `at`."""
        return int((self._start + timedelta(days=1, seconds=at)).timestamp())

    def _certificate(self, private, when, identity, extensions):
        names = x509.SubjectAlternativeName([x509.UniformResourceIdentifier(identity)])
        usage = x509.KeyUsage(True, *[False] * 8)
        builder = (
            x509.CertificateBuilder()
            .subject_name(x509.Name([]))
            .issuer_name(self._name)
            .public_key(private.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(when - timedelta(seconds=5))
            .not_valid_after(when + timedelta(minutes=10))
            .add_extension(names, critical=True)
            .add_extension(usage, critical=True)
            .add_extension(
                x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CODE_SIGNING]), critical=False
            )
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(self._ca_key.public_key()),
                critical=False,
            )
        )
        for number, der in extensions.items():
            oid = x509.ObjectIdentifier(f"{ARC}{number}")
            builder = builder.add_extension(x509.UnrecognizedExtension(oid, der), critical=False)
        stamp = int(when.timestamp()) * 1000
        draft = self._with_sct(builder, stamp, b"")
        issuer = hashlib.sha256(spki(self._ca_key)).digest()
        body = draft.tbs_precertificate_bytes
        signed = (
            struct.pack("!BBQH", 0, 0, stamp, 1)
            + issuer
            + len(body).to_bytes(3, "big")
            + body
            + struct.pack("!H", 0)
        )
        return self._with_sct(builder, stamp, self._ct_key.sign(signed, SHA256))

    def _with_sct(self, builder, stamp, signature):
        sct = (
            struct.pack("!B", 0)
            + key_id(self._ct_key)
            + struct.pack("!QH", stamp, 0)
            + struct.pack("!BBH", 4, 3, len(signature))
            + signature
        )
        several = struct.pack("!HH", len(sct) + 2, len(sct)) + sct
        der = b"\x04" + bytes([len(several)] if len(several) < 128 else [0x81, len(several)])
        oid = x509.ObjectIdentifier(SCT_LIST)
        extension = x509.UnrecognizedExtension(oid, der + several)
        return builder.add_extension(extension, critical=False).sign(self._ca_key, hashes.SHA256())

    def _entry(self, certificate, payload, signature, when):
        pem = certificate.public_bytes(serialization.Encoding.PEM)
        body = canonical_bytes(
            {
                "apiVersion": "0.0.1",
                "kind": "dsse",
                "spec": {
                    "envelopeHash": {"algorithm": "sha256", "value": "0" * 64},
                    "payloadHash": {
                        "algorithm": "sha256",
                        "value": hashlib.sha256(payload).hexdigest(),
                    },
                    "signatures": [{"signature": b64(signature), "verifier": b64(pem)}],
                },
            }
        )
        leaf = hashlib.sha256(b"\x00" + body).digest()
        log = key_id(self._log_key)
        note = f"log.invalid - 1\n1\n{b64(leaf)}\n"
        stamp = log[:4] + self._log_key.sign(note.encode(), SHA256)
        promise = canonical_bytes(
            {"body": b64(body), "integratedTime": when, "logID": log.hex(), "logIndex": 0}
        )
        return {
            "logIndex": "0",
            "logId": {"keyId": b64(log)},
            "kindVersion": {"kind": "dsse", "version": "0.0.1"},
            "integratedTime": str(when),
            "inclusionPromise": {"signedEntryTimestamp": b64(self._log_key.sign(promise, SHA256))},
            "inclusionProof": {
                "logIndex": "0",
                "rootHash": b64(leaf),
                "treeSize": "1",
                "hashes": [],
                "checkpoint": {"envelope": f"{note}\n\u2014 log.invalid {b64(stamp)}\n"},
            },
            "canonicalizedBody": b64(body),
        }


def _der(certificate):
    return certificate.public_bytes(serialization.Encoding.DER)
