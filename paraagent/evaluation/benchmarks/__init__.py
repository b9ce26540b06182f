"""Benchmarks: which tasks a system is judged on."""
