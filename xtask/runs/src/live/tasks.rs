//! The tasks of the live suite. Each is judged by what it did: the files that are there afterwards, or the
//! answer.

use std::path::Path;

/// One task: what is there, what is asked, what must have happened.
pub struct Task {
    pub name: &'static str,
    pub prompt: &'static str,
    pub files: &'static [(&'static str, &'static str)],
    /// The tools that are offered: standard ones, or those of `tools.yaml`.
    pub tools: &'static [&'static str],
    pub done: fn(&After<'_>) -> bool,
}

/// What is there after a task.
pub struct After<'a> {
    pub folder: &'a Path,
    pub answer: &'a str,
    /// How many calls succeeded.
    pub calls: usize,
}

impl After<'_> {
    fn file(&self, name: &str) -> String {
        std::fs::read_to_string(self.folder.join(name)).unwrap_or_default().trim().to_owned()
    }

    fn says(&self, word: &str) -> bool {
        self.answer.to_lowercase().contains(word)
    }

    /// The answer holds the word, and a tool was used to find it.
    fn found(&self, word: &str) -> bool {
        self.calls > 0 && self.says(word)
    }
}

pub const TASKS: &[Task] = &[
    Task {
        name: "read a fact",
        prompt: "What is the code word in the file notes.txt?",
        files: &[("notes.txt", "Remember:\nThe code word is heron.\n")],
        tools: &["read_file", "list_files"],
        done: |after| after.found("heron"),
    },
    Task {
        name: "write a file",
        prompt: "Create a file hello.txt that contains exactly this text: Hello, world",
        files: &[],
        tools: &["write_file", "read_file"],
        done: |after| after.file("hello.txt") == "Hello, world",
    },
    Task {
        name: "edit one value",
        prompt: "In the file config.ini, change the port from 8080 to 9090.",
        files: &[("config.ini", "host = localhost\nport = 8080\n")],
        tools: &["read_file", "edit_file"],
        done: |after| after.file("config.ini") == "host = localhost\nport = 9090",
    },
    Task {
        name: "count files",
        prompt: "List the folder data and tell me how many files it holds.",
        files: &[("data/a.txt", "1"), ("data/b.txt", "2"), ("data/c.txt", "3")],
        tools: &["list_files", "read_file"],
        done: |after| after.found("3") || after.found("three"),
    },
    Task {
        name: "search files",
        prompt: "Which file mentions the word albatross?",
        files: &[("a.txt", "gull\n"), ("b.txt", "an albatross\n"), ("c.txt", "tern\n")],
        tools: &["grep_files", "read_file"],
        done: |after| after.found("b.txt"),
    },
    Task {
        name: "copy a file",
        prompt: "Read the file source.txt and write the same text into the file copy.txt.",
        files: &[("source.txt", "seven blue whales")],
        tools: &["read_file", "write_file"],
        done: |after| after.file("copy.txt") == "seven blue whales",
    },
    Task {
        name: "follow a trail",
        prompt: "The file start.txt names another file. Read that other file and tell me the number in it.",
        files: &[("start.txt", "Look into next.txt"), ("next.txt", "The number is 4711.")],
        tools: &["read_file"],
        done: |after| after.found("4711"),
    },
    Task {
        name: "convert",
        prompt: "What is 100 degrees Celsius in Fahrenheit?",
        files: &[],
        tools: &["celsius_to_fahrenheit", "add_numbers"],
        done: |after| after.found("212"),
    },
    Task {
        name: "add a list",
        prompt: "Use the tool to add 17, 20 and 5.",
        files: &[],
        tools: &["add_numbers", "celsius_to_fahrenheit"],
        done: |after| after.found("42"),
    },
    Task {
        name: "look up",
        prompt: "What is the email address of our customer Ada?",
        files: &[],
        tools: &["find_customer", "order_total"],
        done: |after| after.found("ada@example.com"),
    },
    Task {
        name: "look up what is not there",
        prompt: "What is the email address of our customer Bob?",
        files: &[],
        tools: &["find_customer", "order_total"],
        done: |after| {
            after.calls > 0
                && !after.says("bob@")
                && (after.says("no ") || after.says("not ") || after.says("n't"))
        },
    },
    Task {
        name: "two look-ups in a row",
        prompt: "What is the total of all orders of our customer Ada? First find her id.",
        files: &[],
        tools: &["find_customer", "order_total"],
        done: |after| after.found("42"),
    },
    Task {
        name: "look up and write",
        prompt: "Find the email address of our customer Grace and write it into the file email.txt.",
        files: &[],
        tools: &["find_customer", "write_file"],
        done: |after| after.file("email.txt").contains("grace@example.com"),
    },
    Task {
        name: "replace a word",
        prompt: "In the file story.txt, replace the word cat by the word dog.",
        files: &[("story.txt", "The cat sat on the mat.\n")],
        tools: &["read_file", "edit_file"],
        done: |after| after.file("story.txt") == "The dog sat on the mat.",
    },
    Task {
        name: "remove a line",
        prompt: "Remove the line that says temporary from the file list.txt. Keep the other lines.",
        files: &[("list.txt", "first\ntemporary\nlast\n")],
        tools: &["read_file", "edit_file"],
        done: |after| {
            let lines = after.file("list.txt");
            lines.split_whitespace().collect::<Vec<_>>() == ["first", "last"]
        },
    },
    Task {
        name: "one of three",
        prompt: "Make the light green.",
        files: &[],
        tools: &["set_light", "roll_dice"],
        done: |after| after.file("light.txt") == "green",
    },
    Task {
        name: "two numbers",
        prompt: "Roll two six-sided dice.",
        files: &[],
        tools: &["roll_dice", "set_light"],
        done: |after| after.file("dice.txt") == "2d6",
    },
    Task {
        name: "a list of names",
        prompt: "Create an event called Standup with Ann and Bob.",
        files: &[],
        tools: &["create_event", "send_message"],
        done: |after| after.file("event.txt") == "Standup: Ann, Bob",
    },
    Task {
        name: "look up and send",
        prompt: "Send our customer Ada the message: Your order has arrived. You find her email address with find_customer.",
        files: &[],
        tools: &["find_customer", "send_message"],
        done: |after| after.file("sent.txt").starts_with("ada@example.com: Your order has arrived"),
    },
    Task {
        name: "a file under another name",
        prompt: "Read the file readme.txt and tell me the name of the project. If there is no such file, list the folder and \
                 read the one that comes closest.",
        files: &[("README.md", "# Kingfisher\n\nA project.\n"), ("other.txt", "nothing\n")],
        tools: &["read_file", "list_files"],
        done: |after| after.found("kingfisher"),
    },
    Task {
        name: "a value of a document",
        prompt: "Which version does package.json say?",
        files: &[("package.json", "{\"name\": \"x\", \"version\": \"3.4.1\"}\n")],
        tools: &["read_file", "list_files"],
        done: |after| after.found("3.4.1"),
    },
    Task {
        name: "the best of a table",
        prompt: "Who has the highest score in scores.csv?",
        files: &[("scores.csv", "name,score\nAnn,12\nCleo,31\nBob,7\n")],
        tools: &["read_file", "list_files"],
        done: |after| after.found("cleo"),
    },
    Task {
        name: "read, add, write",
        prompt: "The file numbers.txt holds numbers. Read it, add them with add_numbers, and write the sum into sum.txt.",
        files: &[("numbers.txt", "20\n21\n1\n")],
        tools: &["read_file", "add_numbers", "write_file"],
        done: |after| after.file("sum.txt").contains("42"),
    },
    Task {
        name: "two files into one",
        prompt: "Read first.txt and second.txt, and write both names into both.txt.",
        files: &[("first.txt", "Ada\n"), ("second.txt", "Grace\n")],
        tools: &["read_file", "write_file"],
        done: |after| after.file("both.txt").contains("Ada") && after.file("both.txt").contains("Grace"),
    },
    Task {
        name: "nothing to call",
        prompt: "Say hello to me in one short sentence. You need no tool for this.",
        files: &[],
        tools: &["read_file", "set_light"],
        done: |after| after.says("hello") || after.says("hi"),
    },
];
