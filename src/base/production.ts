/** Elysia reads this to decide whether errors show internals. MUST be imported before Elysia. */
Bun.env.NODE_ENV ??= "production";
