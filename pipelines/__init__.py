"""The pipeline: one module a stage, and the contract that makes every stage resumable and its artifact trustworthy."""
