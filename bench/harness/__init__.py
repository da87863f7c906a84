"""The harness of the benchmark: runs the candidates in turns, and makes figures of what they say."""
