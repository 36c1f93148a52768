"""How tokenizers split texts: the patterns they may look for, and where a long text can be cut before it is tokenized."""
