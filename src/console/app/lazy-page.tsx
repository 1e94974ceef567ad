import type { ComponentType, JSX } from "preact";
import { useEffect } from "preact/hooks";
import { lazy } from "preact-iso";
import { Empty, Page } from "../parts/page.tsx";

/**
 * A page whose script is loaded when the page is first opened. If loading fails, the page shows an error while the
 * menu keeps working; opening the page again reloads the document, because browsers may remember that a script has failed.
 */
export function lazyPage(load: () => Promise<ComponentType>): () => JSX.Element {
  let Content: ComponentType = lazy(loadOnce);

  async function loadOnce(): Promise<ComponentType> {
    try {
      return await load();
    } catch {
      return Failed;
    }
  }

  function Failed(): JSX.Element {
    useEffect(
      () => () => {
        Content = Reload;
      },
      [],
    );
    return (
      <Page title="Page not loaded">
        <Empty
          title="This page could not be loaded"
          action={
            <button type="button" class="button" onClick={() => location.reload()}>
              Reload
            </button>
          }
        >
          The connection to the server may have been interrupted, or the server may have been updated.
        </Empty>
      </Page>
    );
  }

  function Reload(): null {
    useEffect(() => location.reload(), []);
    return null;
  }

  return function LazyPage() {
    return <Content />;
  };
}
