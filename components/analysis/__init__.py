"""One analysis a file, from a Trace or arrays out of it to a small frozen result. Never the charts."""
