"""Tables: from files and streams to named columns of numbers."""
