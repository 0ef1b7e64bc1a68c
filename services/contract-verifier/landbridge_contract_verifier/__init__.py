"""The contract-verifier service."""
