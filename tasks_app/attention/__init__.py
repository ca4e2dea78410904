"""What needs somebody. `reading` asks the database for facts, `rules` judges them (pure), `keeping` keeps what was found."""
