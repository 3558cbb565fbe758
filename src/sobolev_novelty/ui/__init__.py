"""What a person uses: the command line, the app, and the jobs that both do on tables."""
