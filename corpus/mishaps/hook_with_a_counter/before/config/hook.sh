printf '[prompt]\nagents_md_section = "Run %s. {{ agents_md }}"\n' "$(cat count)" > hooked.toml
printf '{"prompt_paths": ["%s/hooked.toml"]}' "$PWD"
