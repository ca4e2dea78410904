"""What mails say. Pure."""
