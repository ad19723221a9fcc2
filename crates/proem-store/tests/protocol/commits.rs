//! A model of clients that read a conversation, change it and commit, in every order, with crashes between any two steps.

use stateright::{Checker, Model, Property};

/// A change of a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Change {
    /// A new state.
    State,
    /// A new state, and the next epoch.
    Epoch,
}

/// The rule by which a change is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rule {
    /// Writes the state and the epoch at once, if the version is still the one that was read.
    CompareVersion,
    /// A fault: only the number of the current epoch is compared.
    CompareEpoch,
    /// A fault: the epoch is written first, and the state later.
    TwoSteps,
}

struct Protocol {
    jobs: Vec<Vec<Change>>,
    crashes_max: u8,
    rule: Rule,
}

/// A change with the client that made it, and its count.
type Made = (u8, u8, Change);

/// A conversation: its state is the list of the changes that it went through, whose length is the version.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
struct Stored {
    epochs: u8,
    state: Vec<Made>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Step {
    Idle,
    Looked(Stored),
    /// The epoch is written, and the state is not.
    Half(Made, Stored),
    /// The change is written; the client does not know it yet.
    Written(Made),
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Client {
    step: Step,
    /// The number of jobs that are done.
    done: usize,
    made: u8,
    has_lost: bool,
    crashes: u8,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct World {
    stored: Stored,
    clients: Vec<Client>,
    /// The changes that were acknowledged.
    acknowledged: Vec<Made>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Action {
    /// The client takes its next step.
    Go(usize),
    /// The client crashes, loses its memory and begins its job again.
    Crash(usize),
}

impl World {
    fn go(&mut self, client: usize, change: Change, rule: Rule) {
        let next = match self.clients[client].step.clone() {
            Step::Idle => Step::Looked(self.stored.clone()),
            Step::Looked(read) => self.commit(client, change, rule, read),
            Step::Half(made, read) => {
                self.write_state(made, &read);
                Step::Written(made)
            }
            Step::Written(made) => {
                self.acknowledged.push(made);
                self.acknowledged.sort_unstable();
                self.clients[client].done += 1;
                Step::Idle
            }
        };
        self.clients[client].step = next;
    }

    fn commit(&mut self, client: usize, change: Change, rule: Rule, read: Stored) -> Step {
        let own = &mut self.clients[client];
        let fits = match rule {
            Rule::CompareVersion => read.state.len() == self.stored.state.len(),
            Rule::CompareEpoch | Rule::TwoSteps => read.epochs == self.stored.epochs,
        };
        if !fits {
            own.has_lost = true;
            return Step::Idle;
        }
        let made = (u8::try_from(client).unwrap(), own.made, change);
        own.made += 1;
        if change == Change::Epoch {
            self.stored.epochs += 1;
        }
        if rule == Rule::TwoSteps {
            return Step::Half(made, read);
        }
        self.write_state(made, &read);
        Step::Written(made)
    }

    /// Replaces the state by the one that was read, with one more change.
    fn write_state(&mut self, made: Made, read: &Stored) {
        self.stored.state.clone_from(&read.state);
        self.stored.state.push(made);
    }
}

impl Model for Protocol {
    type State = World;
    type Action = Action;

    fn init_states(&self) -> Vec<World> {
        let client = Client { step: Step::Idle, done: 0, made: 0, has_lost: false, crashes: 0 };
        let clients = vec![client; self.jobs.len()];
        vec![World { stored: Stored::default(), clients, acknowledged: Vec::new() }]
    }

    fn actions(&self, world: &World, actions: &mut Vec<Action>) {
        for (index, client) in world.clients.iter().enumerate() {
            if client.done < self.jobs[index].len() {
                actions.push(Action::Go(index));
            }
            if client.step != Step::Idle && client.crashes < self.crashes_max {
                actions.push(Action::Crash(index));
            }
        }
    }

    fn next_state(&self, world: &World, action: Action) -> Option<World> {
        let mut next = world.clone();
        match action {
            Action::Go(client) => next.go(client, self.jobs[client][next.clients[client].done], self.rule),
            Action::Crash(client) => {
                next.clients[client].crashes += 1;
                next.clients[client].step = Step::Idle;
            }
        }
        Some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always(NOTHING_LOST, |_, world: &World| {
                world.acknowledged.iter().all(|made| world.stored.state.contains(made))
            }),
            Property::always(WHOLE, |_, world: &World| {
                let opened = world.stored.state.iter().filter(|(.., change)| *change == Change::Epoch);
                opened.count() == usize::from(world.stored.epochs)
            }),
            Property::sometimes("a client that lost succeeds later", |_, world: &World| {
                world.clients.iter().any(|client| client.has_lost && client.done > 0)
            }),
            Property::sometimes("a crash leaves what was stored", |_, world: &World| {
                world.clients.iter().all(|client| client.crashes > 0) && !world.stored.state.is_empty()
            }),
            Property::sometimes("all clients are done", |model: &Self, world: &World| {
                world.clients.iter().zip(&model.jobs).all(|(client, jobs)| client.done == jobs.len())
            }),
        ]
    }
}

const NOTHING_LOST: &str = "an acknowledged change is never lost";
const WHOLE: &str = "an epoch and the state that goes with it are stored together";

fn protocol(rule: Rule) -> Protocol {
    use Change::{Epoch, State};
    Protocol { jobs: vec![vec![Epoch], vec![State, Epoch], vec![State]], crashes_max: 1, rule }
}

#[test]
fn every_order_of_changes_and_crashes_is_right() {
    let checked = protocol(Rule::CompareVersion).checker().spawn_bfs().join();
    checked.assert_properties();
    println!("{} states", checked.unique_state_count());
    assert!(checked.unique_state_count() > 10_000, "the model has become too small");
}

/// The control.
#[test]
fn changes_that_are_stored_wrongly_are_found() {
    for (rule, property) in [(Rule::CompareEpoch, NOTHING_LOST), (Rule::TwoSteps, WHOLE)] {
        let checked = protocol(rule).checker().spawn_bfs().join();
        assert!(checked.discovery(property).is_some(), "{rule:?} is not found");
    }
}
