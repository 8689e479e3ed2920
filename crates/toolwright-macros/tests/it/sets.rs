//! Impl blocks whose methods are tools.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};

use serde_json::json;
use toolwright_core::{ToolContext, ToolError, Toolset, toolset};

struct Accounts {
    balance: AtomicI64,
    log: Mutex<Vec<String>>,
}

#[toolset(prefix = "bank_", category = "money")]
impl Accounts {
    const FEE: i64 = 1;

    fn new(balance: i64) -> Self {
        Accounts { balance: AtomicI64::new(balance), log: Mutex::new(Vec::new()) }
    }

    /// Puts money in.
    #[tool(read_only = false)]
    async fn deposit(
        &self,
        /// How much.
        #[tool(min = 1)]
        amount: i64,
    ) -> i64 {
        self.write("deposit");
        self.balance.fetch_add(amount, Ordering::SeqCst) + amount
    }

    /// Takes money out.
    ///
    /// # Arguments
    ///
    /// * `amount` - How much.
    #[tool(name = "take", category = "risky")]
    fn withdraw(
        &self,
        ctx: &ToolContext,
        amount: i64,
        #[tool(default = Self::FEE, description = "What it costs.")] fee: i64,
    ) -> Result<i64, ToolError> {
        self.write(ctx.call_id());
        let left = self.balance.load(Ordering::SeqCst) - amount - fee;
        if left < 0 {
            return Err(ToolError::new("not enough money"));
        }
        self.balance.store(left, Ordering::SeqCst);
        Ok(left)
    }

    /// Says how much there is.
    #[tool]
    async fn balance(self: &Arc<Self>) -> i64 {
        self.balance.load(Ordering::SeqCst)
    }

    /// Tells what was done.
    #[tool]
    fn history(self: Arc<Self>) -> Vec<String> {
        self.log.lock().unwrap().clone()
    }

    /// Tells the fee.
    #[tool]
    fn fee() -> i64 {
        Self::FEE
    }

    /// Never there.
    #[cfg(any())]
    #[tool]
    fn absent(&self) {}

    fn write(&self, what: &str) {
        self.log.lock().unwrap().push(what.to_owned());
    }
}

async fn call(
    tools: &Toolset,
    name: &str,
    arguments: serde_json::Value,
) -> Result<serde_json::Value, String> {
    let tool = &tools.get(name).expect("the tool is there").tool;
    let result = tool.call(&ToolContext::detached(), arguments).await;
    result.map(|output| output.value()).map_err(|error| error.message().to_owned())
}

#[tokio::test]
async fn the_tools_of_a_value_share_it() {
    let accounts = Arc::new(Accounts::new(10));
    let tools = accounts.tools().unwrap();
    assert_eq!(
        tools.names().collect::<Vec<_>>(),
        ["bank_deposit", "bank_take", "bank_balance", "bank_history", "bank_fee"]
    );
    assert_eq!(call(&tools, "bank_deposit", json!({"amount": 5})).await, Ok(json!(15)));
    assert_eq!(call(&tools, "bank_take", json!({"amount": 4})).await, Ok(json!(10)));
    assert_eq!(call(&tools, "bank_take", json!({"amount": 10})).await, Err("not enough money".to_owned()));
    assert_eq!(call(&tools, "bank_balance", json!({})).await, Ok(json!(10)));
    assert_eq!(call(&tools, "bank_history", json!({})).await, Ok(json!(["deposit", "call", "call"])));
    assert_eq!(call(&tools, "bank_fee", json!({})).await, Ok(json!(1)));
    assert_eq!(accounts.balance.load(Ordering::SeqCst), 10);
}

#[tokio::test]
async fn methods_stay_methods_and_sets_are_apart() {
    let accounts = Accounts::new(1);
    assert_eq!(accounts.deposit(1).await, 2);
    assert_eq!(accounts.withdraw(&ToolContext::detached(), 1, 0).unwrap(), 1);
    let tools = accounts.into_tools().unwrap();
    let others = Accounts::new(7).into_tools().unwrap();
    assert_eq!(call(&tools, "bank_balance", json!({})).await, Ok(json!(1)));
    assert_eq!(call(&others, "bank_balance", json!({})).await, Ok(json!(7)));
}

#[test]
fn options_of_the_set_hold_for_tools_that_say_nothing() {
    let tools = Accounts::new(0).into_tools().unwrap();
    assert_eq!(tools.categories(), ["money".into(), "risky".into()]);
    let take = &tools.get("bank_take").unwrap().tool;
    assert_eq!(take.spec().parameters["properties"]["fee"]["default"], json!(1));
    assert_eq!(take.spec().parameters["required"], json!(["amount"]));
    let deposit = &tools.get("bank_deposit").unwrap().tool;
    assert_eq!(deposit.spec().annotations.read_only, Some(false));
    assert_eq!(deposit.spec().parameters["properties"]["amount"]["minimum"], json!(1));
}

struct Shelf<T> {
    items: Vec<T>,
}

#[toolset]
impl<T: std::fmt::Display> Shelf<T>
where
    T: Send + Sync + 'static,
{
    /// Shows one item.
    #[tool]
    async fn show(
        &self,
        /// Which.
        index: usize,
    ) -> Option<String> {
        self.items.get(index).map(T::to_string)
    }

    /// Counts the items.
    #[tool]
    fn count(&self) -> usize {
        self.items.len()
    }
}

#[tokio::test]
async fn a_generic_type_can_have_tools() {
    let tools = Shelf { items: vec![1.5, 2.5] }.into_tools().unwrap();
    assert_eq!(call(&tools, "show", json!({"index": 1})).await, Ok(json!("2.5")));
    assert_eq!(call(&tools, "count", json!({})).await, Ok(json!(2)));
}

#[tokio::test]
async fn a_set_can_stand_inside_a_function() {
    struct Local(i64);

    #[toolset]
    impl Local {
        /// Gives the number.
        #[toolwright_core::tool]
        fn get(&self) -> i64 {
            self.0
        }
    }
    let tools = Local(3).into_tools().unwrap();
    assert_eq!(call(&tools, "get", json!({})).await, Ok(json!(3)));
}
