"""`tailrace run`: an application under supervision. The application's own side is `tailrace.supervise.run_folder`."""
