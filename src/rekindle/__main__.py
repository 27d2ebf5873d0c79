from rekindle.cli.main import main

main()
