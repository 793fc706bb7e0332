//! Requests and limits of a container.

use super::*;

impl Call {
    /// `container.request`
    pub fn container_request(
        &mut self,
        handle: handle::Container,
        resource: &str,
    ) -> Result<Option<String>, Fault> {
        let target = self.container_target(handle)?;
        let request = self.read_text(target, Field::Requests, resource)?;
        let limit = self.read_text(target, Field::Limits, resource)?;
        Ok(request.or(limit))
    }

    /// `container.limit`
    pub fn container_limit(
        &mut self,
        handle: handle::Container,
        resource: &str,
    ) -> Result<Option<String>, Fault> {
        let target = self.container_target(handle)?;
        self.read_text(target, Field::Limits, resource)
    }

    /// `container.requests`
    pub fn container_requests(
        &mut self,
        handle: handle::Container,
    ) -> Result<Vec<Quantity>, Fault> {
        let mut out = self.amounts(handle, Field::Requests)?;
        let mut only_limits = self.amounts(handle, Field::Limits)?;
        let requests = self.container(handle)?.fields.all(Field::Requests);
        only_limits.retain(|limit| requests.get(&*limit.resource).is_none());
        out.extend(only_limits);
        Ok(out)
    }

    /// `container.limits`
    pub fn container_limits(&mut self, handle: handle::Container) -> Result<Vec<Quantity>, Fault> {
        self.amounts(handle, Field::Limits)
    }

    fn amounts(&mut self, handle: handle::Container, field: Field) -> Result<Vec<Quantity>, Fault> {
        let target = self.container_target(handle)?;
        self.may_read_all(target, field)?;
        let amounts: Vec<_> = self
            .container(handle)?
            .fields
            .all(field)
            .iter()
            .filter_map(|e| {
                Some(Quantity {
                    resource: e.key.to_string(),
                    amount: e.datum.as_text()?.to_owned(),
                })
            })
            .collect();
        self.meter.add_bytes(
            amounts
                .iter()
                .map(|q| q.resource.len() + q.amount.len() + 16)
                .sum(),
        )?;
        Ok(amounts)
    }

    /// `container.set-request`
    pub fn container_set_request(
        &mut self,
        handle: handle::Container,
        resource: &str,
        amount: &str,
    ) -> Result<(), Fault> {
        self.set_amount(handle, Field::Requests, resource, amount)
    }

    /// `container.set-limit`
    pub fn container_set_limit(
        &mut self,
        handle: handle::Container,
        resource: &str,
        amount: &str,
    ) -> Result<(), Fault> {
        self.set_amount(handle, Field::Limits, resource, amount)
    }

    fn set_amount(
        &mut self,
        handle: handle::Container,
        field: Field,
        resource: &str,
        amount: &str,
    ) -> Result<(), Fault> {
        let target = self.container_target(handle)?;
        if Amount::parse(amount).is_none() {
            return wrong(format!(
                "`{}` is not a quantity",
                crate::text::clean(amount)
            ));
        }
        self.set_text(target, field, resource, amount)
    }
}
