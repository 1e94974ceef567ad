/** Elysia reads this where it decides whether to show internals in errors. MUST be imported before Elysia. */
Bun.env.NODE_ENV ??= "production";
