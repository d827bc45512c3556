-- When a webhook that was replaced was retired: from then on its deliveries are answered and counted, and not kept.
alter table webhooks add column retired_at integer;
