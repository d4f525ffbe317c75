"""What a user installs, made and installed as a user would: from files, into an empty folder, without the checkout."""
