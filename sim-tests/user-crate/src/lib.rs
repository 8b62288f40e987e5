//! A key-value store with a fence, as a user of leasehold may have one: it knows nothing of that.

use std::collections::BTreeMap;

/// Values, and the newest token that has ever been here.
#[derive(Debug, Default)]
pub struct Fenced {
    mark: i64,
    values: BTreeMap<String, String>,
}

impl Fenced {
    /// Reads under a token, if there is one.
    ///
    /// # Errors
    /// If a newer token has been here.
    pub fn read(&mut self, key: &str, token: Option<i64>) -> Result<Option<String>, String> {
        self.pass(token)?;
        Ok(self.values.get(key).cloned())
    }

    /// Writes under a token.
    ///
    /// # Errors
    /// If there is none, or a newer one has been here.
    pub fn write(&mut self, key: &str, value: &str, token: Option<i64>) -> Result<(), String> {
        self.pass(Some(token.ok_or("a write needs a token")?))?;
        self.values.insert(key.to_owned(), value.to_owned());
        Ok(())
    }

    fn pass(&mut self, token: Option<i64>) -> Result<(), String> {
        let Some(token) = token else { return Ok(()) };
        if token < self.mark {
            return Err(format!("token {token} is older than {}", self.mark));
        }
        self.mark = token;
        Ok(())
    }
}
