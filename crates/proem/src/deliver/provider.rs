//! Providers: one table of names, from which every flag, help text, completion and error list derives.

use std::fmt;

use proem_core::note::Note;

use proem_core::did_you_mean::nearest;

use super::conversation::Conversation;
use super::shape::{Block, CHAT, MessageShape, Takes};
use super::tools::NameRule;
use super::{PayloadInput, claude, gemini, launch, openai};
use crate::request::raw_json::Json;

/// The form of a request: one for each API or agent that takes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Provider {
    /// Anthropic's messages.
    Anthropic,
    /// OpenAI's responses.
    OpenAiResponses,
    /// OpenAI's chat completions, and every server that speaks them.
    OpenAiChat,
    /// Google's Gemini.
    Gemini,
    /// Converse of Amazon Bedrock.
    Bedrock,
    /// DeepSeek.
    DeepSeek,
    /// An agent that speaks the Agent Client Protocol.
    Acp,
    /// Codex, by its launch arguments.
    Codex,
}

/// A name that users write for a provider, with the form of its requests and the rules of its cache.
#[derive(Debug, PartialEq, Eq)]
pub struct ProviderName {
    /// The word used on the command line and in JSON.
    pub word: &'static str,
    /// Other names for the same provider.
    pub aliases: &'static [&'static str],
    /// The form of its requests.
    pub provider: Provider,
    /// The row of its cache in the table of models; `None` for agents, which make the calls themselves.
    pub cache: Option<&'static str>,
    /// The vendors of the models that it runs; empty if it runs any.
    vendors: &'static [&'static str],
    /// A description for help texts and completions.
    pub about: &'static str,
}

/// Every name. The first ones are in the order of [`Provider`]; servers that share a form follow.
static NAMES: [ProviderName; 11] = [
    ProviderName {
        word: "anthropic",
        aliases: &["claude"],
        provider: Provider::Anthropic,
        cache: Some("anthropic"),
        vendors: &["anthropic"],
        about: "Anthropic's messages",
    },
    ProviderName {
        word: "openai-responses",
        aliases: &["openai"],
        provider: Provider::OpenAiResponses,
        cache: Some("openai"),
        vendors: &["openai"],
        about: "OpenAI's responses",
    },
    ProviderName {
        word: "openai-chat",
        aliases: &[],
        provider: Provider::OpenAiChat,
        cache: Some("openai"),
        vendors: &[],
        about: "OpenAI's chat completions, and servers that speak them",
    },
    ProviderName {
        word: "gemini",
        aliases: &["google"],
        provider: Provider::Gemini,
        cache: Some("gemini"),
        vendors: &["google"],
        about: "Google's Gemini",
    },
    ProviderName {
        word: "bedrock",
        aliases: &["amazon-bedrock"],
        provider: Provider::Bedrock,
        cache: Some("bedrock"),
        vendors: &["anthropic"],
        about: "Converse of Amazon Bedrock",
    },
    ProviderName {
        word: "deepseek",
        aliases: &[],
        provider: Provider::DeepSeek,
        cache: Some("deepseek"),
        vendors: &["deepseek"],
        about: "DeepSeek's chat completions",
    },
    ProviderName {
        word: "acp",
        aliases: &[],
        provider: Provider::Acp,
        cache: None,
        vendors: &[],
        about: "an agent behind the Agent Client Protocol",
    },
    ProviderName {
        word: "codex",
        aliases: &[],
        provider: Provider::Codex,
        cache: None,
        vendors: &[],
        about: "Codex, by its launch arguments",
    },
    ProviderName {
        word: "llama.cpp",
        aliases: &["llama-cpp", "llamacpp"],
        provider: Provider::OpenAiChat,
        cache: Some("llama.cpp"),
        vendors: &[],
        about: "a llama.cpp server, by chat completions",
    },
    ProviderName {
        word: "vllm",
        aliases: &[],
        provider: Provider::OpenAiChat,
        cache: Some("vllm"),
        vendors: &[],
        about: "a vLLM server, by chat completions",
    },
    ProviderName {
        word: "sglang",
        aliases: &[],
        provider: Provider::OpenAiChat,
        cache: Some("sglang"),
        vendors: &[],
        about: "an SGLang server, by chat completions",
    },
];

/// The rules of a provider's requests. A new provider is one row here, one in [`NAMES`], and a file with its payload.
pub(super) struct ProviderRules {
    /// The shape of its messages.
    pub(super) shape: MessageShape,
    /// The rule for names of tools; `None` where no tools are sent.
    pub(super) tool_names: Option<NameRule>,
    /// True if a request can choose how long the cache keeps the prefix.
    pub(super) has_lifetimes: bool,
    /// True if a request can name content that the provider holds.
    pub(super) takes_cached_content: bool,
    /// Fields of a request's body that no other form has.
    own_fields: &'static [&'static str],
    /// Fields of [`SHARED_FIELDS`] that a request's body can have.
    shared_fields: &'static [&'static str],
    /// Makes the body of the request.
    pub(super) payload: Payload,
}

/// Fields that requests of several forms have.
const SHARED_FIELDS: [&str; 2] = ["messages", "system"];

/// A function that makes the body of a request, and may add notes.
type Payload = fn(&PayloadInput<'_>, Conversation, &mut Vec<Note>) -> Result<Json, serde_json::Error>;

const SHORT_NAMES: Option<NameRule> = Some(NameRule { bytes_max: 64, signs: "", begins_with_letter: false });

const CHAT_RULES: ProviderRules = ProviderRules {
    shape: MessageShape { has_plain_form: true, ..CHAT },
    tool_names: SHORT_NAMES,
    has_lifetimes: false,
    takes_cached_content: false,
    own_fields: &[],
    shared_fields: &["messages"],
    payload: |input, conversation, _| Ok(openai::chat(input.is_plain(), input, conversation)),
};

/// The rules in the order of [`Provider`].
static RULES: [ProviderRules; Provider::ALL.len()] = [
    ProviderRules {
        shape: MessageShape {
            roles: &["user", "assistant"],
            marker: Some("cache_control"),
            answers: &["tool_result"],
            is_of_claude: true,
            ..CHAT
        },
        tool_names: Some(NameRule { bytes_max: 128, signs: "", begins_with_letter: false }),
        has_lifetimes: true,
        shared_fields: &SHARED_FIELDS,
        payload: |input, conversation, _| claude::anthropic(input, conversation),
        ..CHAT_RULES
    },
    ProviderRules {
        shape: MessageShape {
            roles: &["user", "assistant", "system", "developer"],
            block: Block::Typed("input_text"),
            takes_items: true,
            ..CHAT
        },
        own_fields: &["input", "instructions"],
        shared_fields: &[],
        payload: |input, conversation, _| Ok(openai::responses(input, conversation)),
        ..CHAT_RULES
    },
    CHAT_RULES,
    ProviderRules {
        shape: MessageShape {
            roles: &["user", "model"],
            assistant: "model",
            content: "parts",
            block: Block::Bare,
            takes: Takes::Blocks,
            marker: None,
            answers: &["functionResponse"],
            ..CHAT
        },
        tool_names: Some(NameRule { bytes_max: 128, signs: ".:", begins_with_letter: true }),
        takes_cached_content: true,
        own_fields: &["contents", "systemInstruction"],
        shared_fields: &[],
        payload: |input, conversation, _| Ok(gemini::gemini(input, conversation)),
        ..CHAT_RULES
    },
    ProviderRules {
        shape: MessageShape {
            roles: &["user", "assistant"],
            block: Block::Bare,
            takes: Takes::Blocks,
            marker: Some("cachePoint"),
            answers: &["toolResult"],
            is_of_claude: true,
            ..CHAT
        },
        has_lifetimes: true,
        own_fields: &["modelId", "toolConfig", "inferenceConfig"],
        shared_fields: &SHARED_FIELDS,
        payload: |input, conversation, _| claude::bedrock(input, conversation),
        ..CHAT_RULES
    },
    ProviderRules {
        shape: MessageShape {
            roles: &["user", "assistant", "tool", "system"],
            block: Block::Joined,
            takes: Takes::Text,
            ..CHAT
        },
        payload: |input, conversation, _| Ok(openai::chat(true, input, conversation)),
        ..CHAT_RULES
    },
    ProviderRules {
        shape: MessageShape { roles: &["user", "assistant"], marker: None, ..CHAT },
        tool_names: None,
        shared_fields: &[],
        payload: |input, conversation, _| launch::acp(input, &conversation),
        ..CHAT_RULES
    },
    ProviderRules {
        shape: MessageShape { roles: &["user", "assistant"], block: Block::Joined, ..CHAT },
        tool_names: None,
        shared_fields: &[],
        payload: |input, conversation, notes| launch::codex(input, &conversation, notes),
        ..CHAT_RULES
    },
];

impl ProviderName {
    /// Every name that a user can write, aliases aside.
    pub fn all() -> impl Iterator<Item = &'static Self> {
        NAMES.iter()
    }

    /// Finds a name by its word or an alias.
    ///
    /// ```
    /// use proem::deliver::ProviderName;
    ///
    /// assert_eq!(ProviderName::find("openai")?.word, "openai-responses");
    /// assert_eq!(
    ///     ProviderName::find("antropic").unwrap_err().hint().as_deref(),
    ///     Some("did you mean `anthropic`?")
    /// );
    /// # Ok::<(), proem::deliver::UnknownProvider>(())
    /// ```
    pub fn find(word: &str) -> Result<&'static Self, UnknownProvider> {
        let is_meant = |name: &&Self| name.word == word || name.aliases.contains(&word);
        Self::all().find(is_meant).ok_or_else(|| UnknownProvider::new(word, &[]))
    }
}

/// A word that names no provider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownProvider {
    word: String,
    expected: Vec<String>,
    nearest: Option<String>,
}

impl UnknownProvider {
    /// Takes the word and the names that are accepted besides the table's, such as caches of the user's own.
    pub(crate) fn new(word: &str, more: &[&str]) -> Self {
        let expected: Vec<&str> =
            ProviderName::all().map(|name| name.word).chain(more.iter().copied()).collect();
        let aliases = ProviderName::all().flat_map(|name| name.aliases).copied();
        let nearest = nearest(word, expected.iter().copied().chain(aliases)).map(str::to_owned);
        let expected = expected.into_iter().map(str::to_owned).collect();
        Self { word: word.chars().take(64).collect(), expected, nearest }
    }

    /// The name that was probably meant.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        self.nearest.as_ref().map(|nearest| format!("did you mean `{nearest}`?"))
    }
}

impl fmt::Display for UnknownProvider {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "unknown provider {:?}; expected one of: {}", self.word, self.expected.join(", "))
    }
}

impl core::error::Error for UnknownProvider {}

impl Provider {
    /// Every form.
    pub const ALL: [Self; 8] = [
        Self::Anthropic,
        Self::OpenAiResponses,
        Self::OpenAiChat,
        Self::Gemini,
        Self::Bedrock,
        Self::DeepSeek,
        Self::Acp,
        Self::Codex,
    ];

    /// The name of the provider that this form belongs to.
    #[must_use]
    pub const fn name(self) -> &'static ProviderName {
        &NAMES[self as usize]
    }

    /// Returns the rules of its requests.
    pub(super) const fn rules(self) -> &'static ProviderRules {
        &RULES[self as usize]
    }

    /// The word used on the command line and in JSON.
    #[must_use]
    pub const fn word(self) -> &'static str {
        self.name().word
    }

    /// The provider that runs a vendor's models.
    #[must_use]
    pub fn of_vendor(vendor: &str) -> Self {
        let runs_only = |provider: &Self| provider.name().vendors == [vendor];
        Self::ALL.into_iter().find(runs_only).unwrap_or(Self::OpenAiChat)
    }

    /// Returns the forms that a request can have by the fields of its body; the form with the fewest fields first. None
    /// if the fields do not tell.
    pub(crate) fn by_fields(has: impl Fn(&str) -> bool) -> Vec<Self> {
        let is_own = |form: &Self| form.rules().own_fields.iter().any(|field| has(field));
        if let Some(own) = Self::ALL.into_iter().find(is_own) {
            return vec![own];
        }
        if !has("messages") {
            return Vec::new();
        }
        let shared: Vec<&str> = SHARED_FIELDS.into_iter().filter(|field| has(field)).collect();
        let fits = |form: &Self| shared.iter().all(|field| form.rules().shared_fields.contains(field));
        let mut forms: Vec<Self> = Self::ALL.into_iter().filter(fits).collect();
        forms.sort_by_key(|form| (form.rules().shared_fields.len(), *form));
        forms
    }

    /// Tells whether it runs models of a vendor.
    pub(super) fn runs(self, vendor: &str) -> bool {
        let vendors = self.name().vendors;
        vendors.is_empty() || vendors.contains(&vendor)
    }

    /// Tells whether it is an agent that keeps the conversation and makes the calls itself.
    pub(crate) const fn is_launched(self) -> bool {
        self.name().cache.is_none()
    }
}

impl fmt::Display for Provider {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.word())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::models::Models;

    #[test]
    fn each_form_has_its_row_and_each_row_its_cache() {
        let models = Models::built_in().expect("it is valid");
        for (provider, name) in Provider::ALL.into_iter().zip(ProviderName::all()) {
            assert_eq!(provider, name.provider);
            assert_eq!(provider.name(), name);
        }
        for name in ProviderName::all() {
            assert!(name.cache.is_none_or(|cache| models.cache(cache).is_some()), "{}", name.word);
        }
    }

    #[test]
    fn words_and_aliases_are_unique() {
        let mut words: Vec<&str> =
            ProviderName::all().flat_map(|name| [&[name.word], name.aliases].concat()).collect();
        let count = words.len();
        words.sort_unstable();
        words.dedup();
        assert_eq!(words.len(), count);
    }

    #[test]
    fn an_unknown_name_is_answered_with_the_list_and_the_nearest() {
        let unknown = ProviderName::find("openai2").unwrap_err();
        assert_eq!(
            unknown.to_string(),
            "unknown provider \"openai2\"; expected one of: anthropic, openai-responses, openai-chat, gemini, \
             bedrock, deepseek, acp, codex, llama.cpp, vllm, sglang"
        );
        assert_eq!(unknown.hint().as_deref(), Some("did you mean `openai`?"));
        assert_eq!(ProviderName::find("zebra-zebra").unwrap_err().hint(), None);
    }

    #[test]
    fn vendors_have_the_provider_that_runs_them() {
        for (vendor, provider) in [
            ("anthropic", Provider::Anthropic),
            ("openai", Provider::OpenAiResponses),
            ("google", Provider::Gemini),
            ("deepseek", Provider::DeepSeek),
            ("xai", Provider::OpenAiChat),
        ] {
            assert_eq!(Provider::of_vendor(vendor), provider, "{vendor}");
        }
    }

    #[test]
    fn forms_are_recognised_by_the_fields_of_the_body() {
        use Provider::{Anthropic, Bedrock, DeepSeek, Gemini, OpenAiChat, OpenAiResponses};
        let table: [(&[&str], &[Provider]); 6] = [
            (&["contents", "tools"], &[Gemini]),
            (&["model", "input"], &[OpenAiResponses]),
            (&["messages", "system", "inferenceConfig"], &[Bedrock]),
            (&["messages", "system"], &[Anthropic, Bedrock]),
            (&["messages"], &[OpenAiChat, DeepSeek, Anthropic, Bedrock]),
            (&["system", "model"], &[]),
        ];
        for (fields, forms) in table {
            assert_eq!(Provider::by_fields(|field| fields.contains(&field)), forms, "{fields:?}");
        }
    }
}
