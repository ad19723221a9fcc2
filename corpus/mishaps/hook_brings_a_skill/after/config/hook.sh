if [ -d ../tree/team ]; then printf '{"skill_paths": ["team"]}'; fi
