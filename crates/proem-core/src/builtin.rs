//! Text compiled into proem: profiles and the assets they name.
//!
//! Changing one of these files changes prompts: the corpus pins their bytes.

/// The built-in profiles, by name.
pub const PROFILES: [(&str, &str); 15] = [
    ("assets", include_str!("../builtin/profiles/assets.toml")),
    ("boundary", include_str!("../builtin/profiles/boundary.toml")),
    ("claude-code", include_str!("../builtin/profiles/claude-code.toml")),
    ("codex", include_str!("../builtin/profiles/codex.toml")),
    ("copilot", include_str!("../builtin/profiles/copilot.toml")),
    ("cursor", include_str!("../builtin/profiles/cursor.toml")),
    ("default", include_str!("../builtin/profiles/default.toml")),
    ("engraving", include_str!("../builtin/profiles/engraving.toml")),
    ("gemini-cli", include_str!("../builtin/profiles/gemini-cli.toml")),
    ("goose", include_str!("../builtin/profiles/goose.toml")),
    ("layers", include_str!("../builtin/profiles/layers.toml")),
    ("opencode", include_str!("../builtin/profiles/opencode.toml")),
    ("pi", include_str!("../builtin/profiles/pi.toml")),
    ("template", include_str!("../builtin/profiles/template.toml")),
    ("zed", include_str!("../builtin/profiles/zed.toml")),
];

/// The built-in assets, by reference without the prefix.
pub const ASSETS: [(&str, &str); 34] = [
    ("agents/claude-code", include_str!("../builtin/agents/claude-code.md.j2")),
    ("agents/claude-code-skills", include_str!("../builtin/agents/claude-code-skills.md.j2")),
    ("agents/codex", include_str!("../builtin/agents/codex.md.j2")),
    ("agents/codex-skills", include_str!("../builtin/agents/codex-skills.md.j2")),
    ("agents/copilot", include_str!("../builtin/agents/copilot.md.j2")),
    ("agents/copilot-skills", include_str!("../builtin/agents/copilot-skills.md.j2")),
    ("agents/cursor", include_str!("../builtin/agents/cursor.md.j2")),
    ("agents/gemini-cli", include_str!("../builtin/agents/gemini-cli.md.j2")),
    ("agents/gemini-cli-skills", include_str!("../builtin/agents/gemini-cli-skills.md.j2")),
    ("agents/goose", include_str!("../builtin/agents/goose.md.j2")),
    ("agents/goose-skills", include_str!("../builtin/agents/goose-skills.md.j2")),
    ("agents/opencode", include_str!("../builtin/agents/opencode.md.j2")),
    ("agents/opencode-skills", include_str!("../builtin/agents/opencode-skills.md.j2")),
    ("agents/pi", include_str!("../builtin/agents/pi.md.j2")),
    ("agents/pi-skills", include_str!("../builtin/agents/pi-skills.md.j2")),
    ("agents/zed", include_str!("../builtin/agents/zed.md.j2")),
    ("boundary/base-v1", include_str!("../builtin/boundary/base-v1.md")),
    ("boundary/instructions", include_str!("../builtin/boundary/instructions.md.j2")),
    ("boundary/project", include_str!("../builtin/boundary/project.md.j2")),
    ("boundary/skills", include_str!("../builtin/boundary/skills.md.j2")),
    ("common/tool-usage", include_str!("../builtin/common/tool-usage.md")),
    ("default", include_str!("../builtin/default.md")),
    ("default/base", include_str!("../builtin/default/base.md")),
    ("default/context", include_str!("../builtin/default/context.md.j2")),
    ("default/skills", include_str!("../builtin/default/skills.md.j2")),
    ("default/tools", include_str!("../builtin/default/tools.md.j2")),
    ("engraving/context", include_str!("../builtin/engraving/context.md.j2")),
    ("engraving/engraving", include_str!("../builtin/engraving/engraving.md")),
    ("engraving/identity", include_str!("../builtin/engraving/identity.md")),
    ("engraving/tools", include_str!("../builtin/engraving/tools.md.j2")),
    ("layers/base", include_str!("../builtin/layers/base.md.j2")),
    ("layers/context", include_str!("../builtin/layers/context.md.j2")),
    ("layers/skills", include_str!("../builtin/layers/skills.md.j2")),
    ("template/base", include_str!("../builtin/template/base.md")),
];

/// The built-in wording that packs can replace.
pub const CATALOG: &str = include_str!("../builtin/catalog.toml");

/// Finds a built-in profile.
#[must_use]
pub fn profile(name: &str) -> Option<&'static str> {
    PROFILES.iter().find(|(known, _)| *known == name).map(|(_, text)| *text)
}

/// Finds a built-in asset.
#[must_use]
pub fn asset(name: &str) -> Option<&'static str> {
    ASSETS.iter().find(|(known, _)| *known == name).map(|(_, text)| *text)
}
