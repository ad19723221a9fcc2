//! Estimated bounds hold for every vocabulary that is compiled in, whatever the text is.
#![expect(clippy::unwrap_used, reason = "a text that cannot be read must stop the test")]

use std::fs;

use proem::tokens::Tokenizer;
use proem_core::estimate::Estimate;
use proem_testkit::project_root;

/// Texts in several languages: the first article of the Universal Declaration of Human Rights, and a sentence of a prompt.
const LANGUAGES: [(&str, &str); 20] = [
    (
        "English",
        "All human beings are born free and equal in dignity and rights. They are endowed with reason and conscience and should act towards one another in a spirit of brotherhood.",
    ),
    (
        "German",
        "Alle Menschen sind frei und gleich an Würde und Rechten geboren. Sie sind mit Vernunft und Gewissen begabt und sollen einander im Geist der Brüderlichkeit begegnen. Donaudampfschifffahrtsgesellschaftskapitän.",
    ),
    (
        "French",
        "Tous les êtres humains naissent libres et égaux en dignité et en droits. Ils sont doués de raison et de conscience et doivent agir les uns envers les autres dans un esprit de fraternité.",
    ),
    (
        "Finnish",
        "Kaikki ihmiset syntyvät vapaina ja tasavertaisina arvoltaan ja oikeuksiltaan. Heille on annettu järki ja omatunto, ja heidän on toimittava toisiaan kohtaan veljeyden hengessä.",
    ),
    (
        "Polish",
        "Wszyscy ludzie rodzą się wolni i równi pod względem swej godności i swych praw. Są oni obdarzeni rozumem i sumieniem i powinni postępować wobec innych w duchu braterstwa.",
    ),
    (
        "Turkish",
        "Bütün insanlar hür, haysiyet ve haklar bakımından eşit doğarlar. Akıl ve vicdana sahiptirler ve birbirlerine karşı kardeşlik zihniyeti ile hareket etmelidirler.",
    ),
    (
        "Vietnamese",
        "Tất cả mọi người sinh ra đều được tự do và bình đẳng về nhân phẩm và quyền. Mọi con người đều được tạo hóa ban cho lý trí và lương tâm và cần phải đối xử với nhau trong tình bằng hữu.",
    ),
    (
        "Swahili",
        "Watu wote wamezaliwa huru, hadhi na haki zao ni sawa. Wote wamejaliwa akili na dhamiri, hivyo yapasa watendeane kindugu.",
    ),
    (
        "Russian",
        "Все люди рождаются свободными и равными в своем достоинстве и правах. Они наделены разумом и совестью и должны поступать в отношении друг друга в духе братства.",
    ),
    (
        "Greek",
        "Όλοι οι άνθρωποι γεννιούνται ελεύθεροι και ίσοι στην αξιοπρέπεια και τα δικαιώματα. Είναι προικισμένοι με λογική και συνείδηση.",
    ),
    (
        "Arabic",
        "يولد جميع الناس أحراراً متساوين في الكرامة والحقوق. وقد وهبوا عقلاً وضميراً وعليهم أن يعامل بعضهم بعضاً بروح الإخاء.",
    ),
    (
        "Hebrew",
        "כל בני אדם נולדו בני חורין ושווים בערכם ובזכויותיהם. כולם חוננו בתבונה ובמצפון, לפיכך חובה עליהם לנהוג איש ברעהו ברוח של אחווה.",
    ),
    (
        "Hindi",
        "सभी मनुष्यों को गौरव और अधिकारों के मामले में जन्मजात स्वतन्त्रता और समानता प्राप्त है। उन्हें बुद्धि और अन्तरात्मा की देन प्राप्त है।",
    ),
    ("Tamil", "மனிதப் பிறிவியினர் சகலரும் சுதந்திரமாகவே பிறக்கின்றனர்; அவர்கள் மதிப்பிலும், உரிமைகளிலும் சமமானவர்கள்."),
    ("Thai", "มนุษย์ทั้งหลายเกิดมามีอิสระและเสมอภาคกันในเกียรติศักดิ์และสิทธิ ต่างมีเหตุผลและมโนธรรม"),
    ("Chinese", "人人生而自由,在尊严和权利上一律平等。他们赋有理性和良心,并应以兄弟关系的精神相对待。"),
    (
        "Japanese",
        "すべての人間は、生まれながらにして自由であり、かつ、尊厳と権利とについて平等である。人間は、理性と良心とを授けられており、互いに同胞の精神をもって行動しなければならない。",
    ),
    (
        "Korean",
        "모든 인간은 태어날 때부터 자유로우며 그 존엄과 권리에 있어 동등하다. 인간은 천부적으로 이성과 양심을 부여받았으며 서로 형제애의 정신으로 행동하여야 한다.",
    ),
    ("Georgian", "ყველა ადამიანი იბადება თავისუფალი და თანასწორი თავისი ღირსებითა და უფლებებით."),
    ("Amharic", "የሰው ልጅ ሁሉ ሲወለድ ነጻና በክብርና በመብትም እኩልነት ያለው ነው።"),
];

/// A generator of numbers that are the same in every run.
struct Chance(u64);

impl Chance {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % end as u64).unwrap()
    }

    /// Returns `count` characters of an alphabet.
    fn text(&mut self, alphabet: &str, count: usize) -> String {
        let alphabet: Vec<char> = alphabet.chars().collect();
        (0..count).map(|_| alphabet[self.below(alphabet.len())]).collect()
    }
}

const BASE64: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const EMOJI: &str = "😀😂🥰😎🤖👍🏽🎉🚀🔥✨⚠️✅❌🧪🦀🐍🇩🇪👩‍💻";

/// Returns texts by name: real files, languages, and machine-made text.
fn texts() -> Vec<(String, String)> {
    let mut texts: Vec<(String, String)> =
        LANGUAGES.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect();
    for path in [
        "docs/caching.md",
        "docs/profiles.md",
        "docs/costs.md",
        "docs/schema/build.json",
        "crates/proem/src/engine.rs",
        "crates/proem-core/builtin/profiles/default.toml",
        "crates/proem-core/builtin/agents/claude-code.md.j2",
        "web/src/editor/TurnTable.svelte",
        "web/src/conversations/time.ts",
        "scripts/live-cache",
        "Cargo.lock",
        "LICENSE-APACHE",
    ] {
        let text = fs::read_to_string(project_root().join(path)).unwrap();
        texts.push((path.to_owned(), text.chars().take(20_000).collect()));
    }
    let mut chance = Chance(7);
    let lower = "abcdefghijklmnopqrstuvwxyz";
    for (name, alphabet) in [
        ("base64", BASE64),
        ("hex", "0123456789abcdef"),
        ("HEX", "0123456789ABCDEF"),
        ("digits", "0123456789"),
        ("binary", "01"),
        ("letters", lower),
        ("capitals", "ABCDEFGHIJKLMNOPQRSTUVWXYZ"),
        ("letters and spaces", "abcdefghijklmnopqrstuvwxyz     "),
        ("signs", "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"),
        ("brackets", "{}[]()<>\",:; "),
        ("emoji", EMOJI),
        ("white space", " \t\n"),
        ("carriage returns", "\r\n \t"),
        ("controls", "\u{1}\u{2}\u{7}\u{1b}\u{7f}"),
        ("private", "\u{e000}\u{f8ff}\u{100000}\u{10fffd}"),
        ("rare Han", "𠀀𠀁𠀂㐀㐁龘靐齉"),
        ("symbols", "→←∀∃∈≤≥≠∑∫│─┌┐└┘█▓▒░•…“”„–—"),
        ("accents", "àáâãäåæçèéêëìíîïðñòóôõöøùúûüýþÿ"),
        ("hidden", "\u{200b}\u{200d}\u{2060}\u{feff}\u{ad}"),
    ] {
        texts.push((name.to_owned(), chance.text(alphabet, 3_000)));
    }
    for (name, piece) in [
        ("spaces", " "),
        ("tabs", "\t"),
        ("lines", "\n"),
        ("equals", "="),
        ("dashes", "-"),
        ("hashes", "#"),
        ("letter a", "a"),
        ("zeros", "0"),
        ("boxes", "─"),
        ("smiles", "😀"),
        ("dots", "."),
        ("ha", "ha"),
        ("table rules", "|---"),
        ("cells", "| a | b |\n"),
    ] {
        texts.push((name.to_owned(), piece.repeat(2_000)));
    }
    texts
}

fn counts(text: &str) -> (usize, usize) {
    let counts = Tokenizer::NAMES.map(|name| Tokenizer::named(name).encode(text).unwrap().len());
    (*counts.iter().min().unwrap(), *counts.iter().max().unwrap())
}

fn check(name: &str, text: &str) -> Option<String> {
    let (estimate, (least, most)) = (Estimate::from_text(text), counts(text));
    let (low, likely, high) = (estimate.low(), estimate.tokens(), estimate.high());
    let holds = low <= least && most <= high && (low..=high).contains(&likely);
    (!holds).then(|| format!("{name}: counted {least} to {most}, estimated {low} to {high}: {text:.100?}"))
}

#[test]
fn bounds_hold_for_every_vocabulary() {
    let failures: Vec<String> = texts().iter().filter_map(|(name, text)| check(name, text)).collect();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// Uses pieces of all those texts in random order, each of random length.
#[test]
fn bounds_hold_for_random_mixtures() {
    let texts = texts();
    let mut chance = Chance(11);
    let mut failures = Vec::new();
    let rounds = if std::env::var_os("PROEM_LONG").is_some() { 100_000 } else { 3_000 };
    for round in 0..rounds {
        let mut mixture = String::new();
        for _ in 0..=chance.below(6) {
            let text = &texts[chance.below(texts.len())].1;
            let start = text.floor_char_boundary(chance.below(text.len()));
            let end = text.floor_char_boundary(text.len().min(start + 1 + chance.below(200)));
            mixture.push_str(text.get(start..end).unwrap());
        }
        failures.extend(check(&format!("mixture {round}"), &mixture));
    }
    assert!(
        failures.is_empty(),
        "{} of {rounds}\n{}",
        failures.len(),
        failures[..failures.len().min(40)].join("\n")
    );
}
