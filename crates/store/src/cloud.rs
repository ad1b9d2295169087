//! Objects of S3 and of Google Cloud Storage.

use std::sync::Arc;
use std::time::Duration;

use object_store::aws::AmazonS3Builder;
use object_store::gcp::GoogleCloudStorageBuilder;
use object_store::path::Path;
use object_store::{BackoffConfig, Error, ObjectStore, ObjectStoreExt, PutMode, Result, RetryConfig};
use tokio::runtime::{Builder, Runtime};

/// Longest time for which a request is repeated.
const PATIENCE: Duration = Duration::from_secs(30);

/// The objects below one prefix of a bucket.
///
/// Its runtime belongs to it: a process that was forked has none of the connections of its parent.
#[derive(Debug)]
pub struct Cloud {
    store: Arc<dyn ObjectStore>,
    prefix: Path,
    runtime: Runtime,
}

impl Cloud {
    /// Whether a store with this name is in the cloud.
    pub fn has(name: &str) -> bool {
        name.starts_with("s3://") || name.starts_with("gs://")
    }

    /// The objects below `name`, such as `s3://bucket/prefix`. Access and endpoint come from the environment:
    /// variables that begin with `AWS_` or `GOOGLE_`, or the identity of the machine.
    ///
    /// # Errors
    /// The name has no bucket, or the environment is contradictory.
    pub fn at(name: &str) -> Result<Self> {
        // Another user of this library in the process may have chosen already.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let backoff = BackoffConfig { max_backoff: Duration::from_secs(4), ..BackoffConfig::default() };
        let retry = RetryConfig { backoff, max_retries: 16, retry_timeout: PATIENCE };
        let store: Arc<dyn ObjectStore> = match name.starts_with("gs://") {
            true => Arc::new(GoogleCloudStorageBuilder::from_env().with_url(name).with_retry(retry).build()?),
            false => Arc::new(AmazonS3Builder::from_env().with_url(name).with_retry(retry).build()?),
        };
        let (_, prefix) = name.split_at(5).1.split_once('/').unwrap_or_default();
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|e| Error::Generic { store: "client", source: e.into() })?;
        Ok(Self { store, prefix: Path::parse(prefix.trim_end_matches('/'))?, runtime })
    }

    fn path(&self, object: &str) -> Path {
        object
            .split('/')
            .filter(|part| !part.is_empty())
            .fold(self.prefix.clone(), |path, part| path.join(part))
    }

    /// Writes an object unless there is one; returns whether it was written. After a lost answer the object may be
    /// one's own although this returns false.
    pub fn put_new(&self, object: &str, bytes: &[u8]) -> Result<bool> {
        let path = self.path(object);
        let put = self.store.put_opts(&path, bytes.to_vec().into(), PutMode::Create.into());
        match self.runtime.block_on(put) {
            Err(Error::AlreadyExists { .. }) => Ok(false),
            done => done.map(|_| true),
        }
    }

    /// Writes an object, also in place of another one.
    pub fn put(&self, object: &str, bytes: &[u8]) -> Result<()> {
        self.runtime.block_on(self.store.put(&self.path(object), bytes.to_vec().into())).map(drop)
    }

    /// The content of an object; `None` if there is none.
    pub fn get(&self, object: &str) -> Result<Option<Vec<u8>>> {
        let read = async { self.store.get(&self.path(object)).await?.bytes().await };
        match self.runtime.block_on(read) {
            Err(Error::NotFound { .. }) => Ok(None),
            read => read.map(|bytes| Some(bytes.to_vec())),
        }
    }

    /// The names of the objects and folders in a folder.
    pub fn list(&self, folder: &str) -> Result<Vec<String>> {
        let found = self.runtime.block_on(self.store.list_with_delimiter(Some(&self.path(folder))))?;
        let objects = found.objects.iter().map(|object| &object.location);
        let names = objects.chain(&found.common_prefixes).filter_map(Path::filename);
        Ok(names.map(String::from).collect())
    }
}
