//! Text compiled into proem: profiles and the assets they name.
//!
//! Changing one of these files changes prompts: the corpus pins their bytes.

/// The built-in profiles, by name.
pub const PROFILES: [(&str, &str); 1] = [("template", include_str!("../builtin/profiles/template.toml"))];

/// The built-in assets, by reference without the prefix.
pub const ASSETS: [(&str, &str); 1] = [("template/base", include_str!("../builtin/template/base.md"))];

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
