"""What other systems are told, and what they tell: outbox, bus, inbox."""
