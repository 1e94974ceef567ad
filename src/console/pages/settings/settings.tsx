import type { JSX } from "preact";
import { useRoute } from "preact-iso";
import { Empty, Page, Tabs } from "../../parts/page.tsx";
import { useSession } from "../../state/session.tsx";
import { About } from "./about.tsx";
import { Developers } from "./developers/developers.tsx";
import { Limits } from "./limits/limits.tsx";
import { Models } from "./models/models.tsx";
import { Notifications } from "./notifications/notifications.tsx";
import { Sessions } from "./sessions.tsx";

interface SettingsSection {
  readonly path: string;
  readonly name: string;
  /** Scope that a token needs to see the section. */
  readonly scope: string | null;
  readonly component: () => JSX.Element;
}

const SECTIONS: readonly SettingsSection[] = [
  { path: "developers", name: "Developers", scope: "tokens:write", component: Developers },
  { path: "limits", name: "Limits", scope: "settings:write", component: Limits },
  { path: "notifications", name: "Notifications", scope: "settings:write", component: Notifications },
  { path: "models", name: "Models", scope: "agents:read", component: Models },
  { path: "sessions", name: "Sessions", scope: "tokens:write", component: Sessions },
  { path: "about", name: "About", scope: null, component: About },
];

/** `/console/settings/:section`, or the first section that the reader may see. */
export function Settings(): JSX.Element {
  const { params } = useRoute();
  const { can } = useSession();
  const open = SECTIONS.filter(({ scope }) => scope === null || can(scope));
  const { section: asked } = params;
  const section = asked === undefined ? open[0] : SECTIONS.find(({ path }) => path === asked);
  return (
    <Page title="Settings">
      <Tabs
        label="Settings"
        of={open.map(({ path, name }) => [addressOf(path), name] as const)}
        current={section ? addressOf(section.path) : ""}
      />
      <Content section={section} />
    </Page>
  );
}

function Content({ section }: { readonly section: SettingsSection | undefined }): JSX.Element {
  const { can } = useSession();
  if (!section) {
    return (
      <Empty title="There is no such section">
        The address may be mistyped. Choose one of the sections above.
      </Empty>
    );
  }
  if (section.scope !== null && !can(section.scope)) {
    return (
      <Empty title="Your token may not see this">
        It needs the scope <code>{section.scope}</code>. Sign in with a token that has it, or ask the person
        who issued yours.
      </Empty>
    );
  }
  const Component = section.component;
  return <Component />;
}

function addressOf(path: string): string {
  return `/console/settings/${path}`;
}
