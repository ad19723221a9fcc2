//! The moment as English writes it out: `Saturday, March 7, 2026 at 08:55:05 AM CST`.
//!
//! The words are those of JavaScript's `Intl.DateTimeFormat('en-US', …)` with every part long and the zone's short
//! name. Only the zone database inside the program is used, never the machine's: two machines must not disagree about a
//! zone.

use std::ops::Range;

use jiff::Timestamp;
use jiff::civil::{DateTime, datetime};
use jiff::tz::{Dst, Offset, TimeZone, TimeZoneDatabase, TimeZoneOffsetInfo};

/// Writes out `now` in the zone with this name, whatever the case of its letters. Returns `None` for an unknown zone.
///
/// An offset such as `+02:00` is not accepted as a name. Node 20 does the same; later versions accept it.
pub(crate) fn long_date(now: Timestamp, zone: &str) -> Option<String> {
    let zone = TimeZoneDatabase::bundled().get(zone).ok()?;
    let name = place(&zone)?;
    let info = zone.to_offset_info(now);
    let local = info.offset().to_datetime(now);
    Some(format!("{} {}", local.strftime("%A, %B %-d, %-Y at %I:%M:%S %p"), short_name(name, now, &info)))
}

/// The day in the zone with this name, as `2026-03-07`.
pub(crate) fn local_date(now: Timestamp, zone: &str) -> Option<String> {
    let zone = TimeZoneDatabase::bundled().get(zone).ok()?;
    place(&zone)?;
    Some(zone.to_datetime(now).strftime("%Y-%m-%d").to_string())
}

/// Returns the zone's name. The database also has two names that stand for no place, which ICU refuses.
fn place(zone: &TimeZone) -> Option<&str> {
    zone.iana_name().filter(|name| !zone.is_unknown() && *name != "Factory")
}

/// Letters of the zone database that ICU also uses. ICU has short names for America only: elsewhere, `CET` or `IST`
/// becomes an offset.
const SHARED: &[&str] = &[
    "UTC", "GMT", "AST", "ADT", "EST", "EDT", "CST", "CDT", "MST", "MDT", "PST", "PDT", "AKST", "AKDT", "HST",
];

/// Zones in which ICU's short names are not the zone database's letters.
///
/// ICU names a zone by the «metazone» it belongs to at the time, which the zone database does not know. Found by
/// comparing both over every zone and every day from 1970 to 2037.
struct Exception {
    /// Every spelling of each zone, links included, separated by spaces.
    zones: &'static str,
    /// The period of the exception, in UTC.
    during: Range<DateTime>,
    /// The short name in standard time; an offset is written if it is `None`.
    standard: Option<&'static str>,
    daylight: Option<&'static str>,
}

const ALWAYS: Range<DateTime> = DateTime::MIN..DateTime::MAX;

/// Parts of Canada changed their clocks for the last time in the spring before. The zone database calls what
/// followed the standard time of the next zone to the east, ICU a daylight time without an end.
const SINCE_LAST_CHANGE: Range<DateTime> = datetime(2026, 11, 1, 0, 0, 0, 0)..DateTime::MAX;

const EXCEPTIONS: &[Exception] = &[
    // `CST`, `MST` and `PST` are also China's, Cuba's, the Philippines' and the Mexican Pacific's.
    Exception {
        zones: "America/Havana America/Hermosillo America/Mazatlan Asia/Chongqing Asia/Chungking Asia/Harbin \
                Asia/Macao Asia/Macau Asia/Manila Asia/Shanghai Asia/Taipei Cuba Mexico/BajaSur PRC ROC",
        during: ALWAYS,
        standard: None,
        daylight: None,
    },
    Exception {
        zones: "America/Chihuahua America/Ciudad_Juarez",
        during: datetime(1998, 4, 5, 9, 0, 0, 0)..datetime(2022, 10, 30, 8, 0, 0, 0),
        standard: None,
        daylight: None,
    },
    Exception {
        zones: "America/Dawson America/Whitehorse Canada/Yukon",
        during: datetime(2020, 11, 1, 7, 0, 0, 0)..DateTime::MAX,
        standard: None,
        daylight: None,
    },
    Exception {
        zones: "America/Edmonton America/Inuvik America/Yellowknife Canada/Mountain",
        during: SINCE_LAST_CHANGE,
        standard: Some("MDT"),
        daylight: Some("MDT"),
    },
    Exception {
        zones: "America/Rainy_River America/Winnipeg Canada/Central",
        during: SINCE_LAST_CHANGE,
        standard: Some("CDT"),
        daylight: Some("CDT"),
    },
    Exception {
        zones: "America/Vancouver Canada/Pacific",
        during: SINCE_LAST_CHANGE,
        standard: Some("PDT"),
        daylight: Some("PDT"),
    },
    Exception {
        zones: "America/Adak America/Atka US/Aleutian",
        during: datetime(1983, 11, 30, 10, 0, 0, 0)..DateTime::MAX,
        standard: Some("HAST"),
        daylight: Some("HADT"),
    },
    Exception { zones: "Antarctica/Troll", during: ALWAYS, standard: Some("GMT"), daylight: None },
    // JavaScript takes these for UTC, but leaves `Etc/GMT0`, `Etc/Greenwich` and their like alone.
    Exception {
        zones: "Etc/GMT GMT GMT+0 GMT-0 GMT0",
        during: ALWAYS,
        standard: Some("UTC"),
        daylight: Some("UTC"),
    },
];

fn short_name(zone: &str, now: Timestamp, info: &TimeZoneOffsetInfo) -> String {
    let utc = Offset::UTC.to_datetime(now);
    let holds = |it: &&Exception| it.during.contains(&utc) && it.zones.split(' ').any(|name| name == zone);
    let name = match (EXCEPTIONS.iter().find(holds), info.dst()) {
        (Some(exception), Dst::No) => exception.standard,
        (Some(exception), Dst::Yes) => exception.daylight,
        (None, _) => Some(info.abbreviation()).filter(|letters| SHARED.contains(letters)),
    };
    name.map_or_else(|| offset_name(info.offset()), str::to_owned)
}

/// Writes `GMT+2` or `GMT-3:30`; `GMT+0` for a zone that is not on GMT but happens to agree with it.
fn offset_name(offset: Offset) -> String {
    let sign = if offset.is_negative() { '-' } else { '+' };
    let seconds = offset.seconds().unsigned_abs();
    let (hours, minutes, rest) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    match (minutes, rest) {
        (0, 0) => format!("GMT{sign}{hours}"),
        (_, 0) => format!("GMT{sign}{hours}:{minutes:02}"),
        _ => format!("GMT{sign}{hours}:{minutes:02}:{rest:02}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Output of Node for the same moments and zones.
    const SAID_BY_NODE: &[(&str, &str, &str)] = &[
        ("2026-03-07T14:55:05Z", "America/Chicago", "Saturday, March 7, 2026 at 08:55:05 AM CST"),
        ("2026-03-08T07:59:59Z", "US/Central", "Sunday, March 8, 2026 at 01:59:59 AM CST"),
        ("2026-03-08T08:00:00Z", "us/central", "Sunday, March 8, 2026 at 03:00:00 AM CDT"),
        ("2026-11-01T05:59:59Z", "America/New_York", "Sunday, November 1, 2026 at 01:59:59 AM EDT"),
        ("2026-11-01T06:00:00Z", "EST5EDT", "Sunday, November 1, 2026 at 01:00:00 AM EST"),
        ("2026-07-08T05:00:00Z", "EST", "Wednesday, July 8, 2026 at 12:00:00 AM EST"),
        ("2026-07-08T19:00:00Z", "America/Phoenix", "Wednesday, July 8, 2026 at 12:00:00 PM MST"),
        ("2026-07-08T10:00:00Z", "Pacific/Honolulu", "Wednesday, July 8, 2026 at 12:00:00 AM HST"),
        ("2024-02-29T22:30:00Z", "America/Adak", "Thursday, February 29, 2024 at 12:30:00 PM HAST"),
        ("2026-07-08T12:00:00Z", "America/Anchorage", "Wednesday, July 8, 2026 at 04:00:00 AM AKDT"),
        ("2021-01-01T04:00:00Z", "America/Halifax", "Friday, January 1, 2021 at 12:00:00 AM AST"),
        ("2026-07-08T12:00:00Z", "America/Havana", "Wednesday, July 8, 2026 at 08:00:00 AM GMT-4"),
        ("2022-10-30T07:59:59Z", "America/Chihuahua", "Sunday, October 30, 2022 at 01:59:59 AM GMT-6"),
        ("2022-10-30T08:00:00Z", "America/Chihuahua", "Sunday, October 30, 2022 at 02:00:00 AM CST"),
        ("2020-11-01T07:00:00Z", "America/Whitehorse", "Sunday, November 1, 2020 at 12:00:00 AM GMT-7"),
        ("2027-01-15T12:00:00Z", "America/Vancouver", "Friday, January 15, 2027 at 05:00:00 AM PDT"),
        ("2000-01-01T02:59:59Z", "America/Buenos_Aires", "Friday, December 31, 1999 at 11:59:59 PM GMT-3"),
        ("2026-01-01T00:00:00Z", "UTC", "Thursday, January 1, 2026 at 12:00:00 AM UTC"),
        ("2026-01-01T12:00:00Z", "gmt", "Thursday, January 1, 2026 at 12:00:00 PM UTC"),
        ("2026-01-01T00:00:00Z", "Africa/Abidjan", "Thursday, January 1, 2026 at 12:00:00 AM GMT"),
        ("2026-03-29T00:59:59Z", "Europe/London", "Sunday, March 29, 2026 at 12:59:59 AM GMT"),
        ("2026-03-29T01:00:00Z", "europe/london", "Sunday, March 29, 2026 at 02:00:00 AM GMT+1"),
        ("2026-01-15T12:00:00Z", "Europe/Lisbon", "Thursday, January 15, 2026 at 12:00:00 PM GMT+0"),
        ("2026-01-15T12:00:00Z", "Antarctica/Troll", "Thursday, January 15, 2026 at 12:00:00 PM GMT"),
        ("2026-07-08T12:00:00Z", "Etc/GMT+5", "Wednesday, July 8, 2026 at 07:00:00 AM GMT-5"),
        ("2025-12-31T15:00:00Z", "Asia/Tokyo", "Thursday, January 1, 2026 at 12:00:00 AM GMT+9"),
        ("2026-07-08T18:30:00Z", "Asia/Kolkata", "Thursday, July 9, 2026 at 12:00:00 AM GMT+5:30"),
        ("2026-07-08T12:00:00Z", "Asia/Shanghai", "Wednesday, July 8, 2026 at 08:00:00 PM GMT+8"),
        ("2026-01-15T12:00:00Z", "Pacific/Chatham", "Friday, January 16, 2026 at 01:45:00 AM GMT+13:45"),
    ];

    #[test]
    fn dates_are_written_as_node_writes_them() {
        for (now, zone, expected) in SAID_BY_NODE {
            assert_eq!(long_date(now.parse().unwrap(), zone).as_deref(), Some(*expected), "{now} in {zone}");
        }
    }

    #[test]
    fn what_is_no_zone_has_no_date() {
        for zone in ["", "Mars/Olympus_Mons", " UTC", "PST", "+02:00", "UTC+1", "Factory", "etc/unknown"] {
            assert_eq!(long_date(Timestamp::UNIX_EPOCH, zone), None, "{zone}");
        }
    }

    #[test]
    fn every_exception_is_a_zone() {
        for zone in EXCEPTIONS.iter().flat_map(|exception| exception.zones.split(' ')) {
            let found = TimeZoneDatabase::bundled().get(zone).unwrap();
            assert_eq!(found.iana_name(), Some(zone));
        }
    }
}
