"""The paper's own engines: genetic programming and tree search."""
