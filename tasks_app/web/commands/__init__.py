"""What the pages of commands on tasks and on jobs share: buttons, fields of their forms, and the rows that were chosen."""
