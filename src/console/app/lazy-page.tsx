import type { ComponentType, JSX } from "preact";
import { useEffect } from "preact/hooks";
import { lazy } from "preact-iso";
import { Empty, Page } from "../parts/page.tsx";

/**
 * A page whose script is loaded when it is first opened. If that fails, the page says so; the menu goes on working, and opening
 * the page again loads it again.
 */
export function lazyPage(load: () => Promise<ComponentType>): () => JSX.Element {
  let Content = lazy(loadOnce);

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
        Content = lazy(loadOnce);
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

  return function LazyPage() {
    return <Content />;
  };
}
