"""A run that trains in seconds, for tests that need a correct configuration."""

CONFIG = """
run: {name: tiny, workers: 2, rounds: 3}
model: {gpt: {layers: 1, heads: 1, width: 32, context: 16, vocabulary: 256}}
data: {tokenizer: bytes}
inner: {steps: 2, learning_rate: 1e-3, batch: 2}
"""
