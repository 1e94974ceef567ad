/** The page at `/docs`. It loads only from this server. */
export const PAGE = `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <title>Gatehouse API</title>
    <link rel="icon" href="data:,">
    <link rel="stylesheet" href="/docs/swagger-ui.css">
    <script src="/docs/swagger-ui-bundle.js" defer></script>
    <script src="/docs/init.js" defer></script>
  </head>
  <body>
    <div id="docs"></div>
    <noscript>This page needs JavaScript. The same document for programs is at <a href="/openapi.json">/openapi.json</a>.</noscript>
  </body>
</html>
`;

/** Starts Swagger UI. The validator badge is off because it would call another host. Tokens typed in are not kept. */
export const INIT = `SwaggerUIBundle({
  url: "/openapi.json",
  dom_id: "#docs",
  validatorUrl: null,
  deepLinking: true,
  docExpansion: "list",
  defaultModelsExpandDepth: 0,
  persistAuthorization: false,
});
`;
