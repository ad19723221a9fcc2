//! The tools of a conversation: the registry of all definitions, and the names of the active ones.

use serde::{Deserialize, Serialize};

use crate::request::{Tool, distinct_tools};

/// All tools of a conversation, and which of them are active. Names are unique.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ToolSet {
    registry: Vec<Tool>,
    /// The names of the active tools, in the order in which prompts list them.
    active: Vec<String>,
}

impl ToolSet {
    /// Makes a set in which every tool is active. Of several tools with one name, the first counts.
    #[must_use]
    pub fn new(tools: &[Tool]) -> Self {
        let registry: Vec<Tool> = distinct_tools(tools).into_iter().cloned().collect();
        let active = registry.iter().map(|tool| tool.name.clone()).collect();
        Self { registry, active }
    }

    /// Returns the definitions of all tools.
    #[must_use]
    pub fn registry(&self) -> &[Tool] {
        &self.registry
    }

    /// Returns the definitions of the active tools, in order.
    #[must_use]
    pub fn active(&self) -> Vec<Tool> {
        self.active.iter().filter_map(|name| self.find(name)).cloned().collect()
    }

    /// Replaces the registry. Active tools stay active while they exist, and new ones become active.
    #[must_use]
    pub fn with_registry(&self, tools: &[Tool]) -> Self {
        let next = Self::new(tools);
        let is_known = |name: &&String| self.find(name).is_some();
        let kept = self.active.iter().filter(|name| next.find(name).is_some());
        let active = kept.chain(next.active.iter().filter(|name| !is_known(name))).cloned().collect();
        Self { active, ..next }
    }

    /// Chooses the active tools by name. Returns the new set, and the names that no tool has.
    #[must_use]
    pub fn with_active(&self, names: &[String]) -> (Self, Vec<String>) {
        let (mut active, mut unknown): (Vec<String>, Vec<String>) = Default::default();
        for name in names {
            let list = if self.find(name).is_some() { &mut active } else { &mut unknown };
            if !list.contains(name) {
                list.push(name.clone());
            }
        }
        // The same set in another order is not a change.
        if is_same_set(&active, &self.active) {
            active.clone_from(&self.active);
        }
        (Self { registry: self.registry.clone(), active }, unknown)
    }

    fn find(&self, name: &str) -> Option<&Tool> {
        self.registry.iter().find(|tool| tool.name == name)
    }
}

fn is_same_set<T: PartialEq>(one: &[T], other: &[T]) -> bool {
    one.len() == other.len() && one.iter().all(|item| other.contains(item))
}

/// Tells whether two lists hold the same tools, in any order.
#[must_use]
pub fn has_same_tools(one: &[Tool], other: &[Tool]) -> bool {
    let (one, other) = (distinct_tools(one), distinct_tools(other));
    is_same_set(&one, &other)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tools(names: &[&str]) -> Vec<Tool> {
        names.iter().map(|name| Tool { name: (*name).into(), ..Tool::default() }).collect()
    }

    fn names(set: &ToolSet) -> Vec<String> {
        set.active().into_iter().map(|tool| tool.name).collect()
    }

    #[test]
    fn active_tools_stay_active_and_new_ones_become_active() {
        let (set, unknown) =
            ToolSet::new(&tools(&["a", "b", "c"])).with_active(&["c".into(), "a".into(), "x".into()]);
        assert_eq!((names(&set), unknown), (vec!["c".into(), "a".into()], vec!["x".into()]));
        let next = set.with_registry(&tools(&["a", "b", "d"]));
        assert_eq!(names(&next), ["a", "d"], "`b` was not active, `c` is gone, `d` is new");
        assert_eq!(next.with_registry(&tools(&["a", "b", "d"])), next, "the same list changes nothing");
    }

    #[test]
    fn the_same_names_in_another_order_are_not_a_change() {
        let set = ToolSet::new(&tools(&["a", "b"]));
        assert_eq!(set.with_active(&["b".into(), "a".into(), "b".into()]).0, set);
        assert_eq!(names(&set.with_active(&[]).0), Vec::<String>::new());
    }

    #[test]
    fn the_first_of_two_tools_with_one_name_counts() {
        let mut twice = tools(&["a", "a"]);
        twice[1].description = Some("second".into());
        assert_eq!(ToolSet::new(&twice).registry(), &twice[..1]);
        assert!(has_same_tools(&twice, &tools(&["a"])) && !has_same_tools(&twice, &tools(&["a", "b"])));
    }
}
