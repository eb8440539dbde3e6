"""Which Keras the code of a project runs on, from its files; nothing of the project is executed."""
