import { useState } from 'preact/hooks';
import '../shared/page.css';
import { showPage } from '../shared/show-page.ts';
import { useLeaveQuestion } from '../shared/use-leave-question.ts';
import { WORDS } from '../words.ts';
import { KeyPage } from './key-page.tsx';
import { type PageFacts, pageFacts } from './page-facts.ts';
import './portal.css';
import type { OwnKey, SelfService } from './own-key.ts';
import { SignIn } from './sign-in.tsx';

const { portal: words } = WORDS;

/** A key that is signed in. It ends with the page: nothing of it is stored. */
interface Session {
  readonly service: SelfService;
  readonly first: OwnKey;
}

function PortalPage({ facts }: { readonly facts: PageFacts }) {
  const [session, setSession] = useState<Session>();
  const [notice, setNotice] = useState<string>();
  const [hasNewSecret, setHasNewSecret] = useState(false);
  useLeaveQuestion(hasNewSecret);
  const signOut = (reason?: string) => {
    setSession(undefined);
    setNotice(reason);
  };
  return (
    <>
      <header class="top">
        <p class="brand">
          {facts.hasLogo && <img src="./portal/logo" alt="" />}
          <span>{facts.name}</span>
        </p>
        <nav aria-label={words.links}>
          {facts.docsUrl !== null && <OtherPage href={facts.docsUrl}>{words.docs}</OtherPage>}
          {facts.supportUrl !== null && <OtherPage href={facts.supportUrl}>{words.support}</OtherPage>}
          {session !== undefined && (
            <button
              type="button"
              onClick={() => {
                if (!hasNewSecret || window.confirm(words.loseSecret)) signOut();
              }}
            >
              {words.signOut}
            </button>
          )}
        </nav>
      </header>
      <main>
        {session === undefined ? (
          <SignIn
            path={facts.selfServicePath}
            notice={notice}
            onSignedIn={(service, first) => setSession({ service, first })}
          />
        ) : (
          <KeyPage {...session} facts={facts} onEnded={signOut} onNewSecret={setHasNewSecret} />
        )}
      </main>
    </>
  );
}

/** A page opens beside the portal, which would lose the key and a new secret. An address for mail would leave an empty tab there. */
function OtherPage({ href, children }: { readonly href: string; readonly children: string }) {
  return (
    <a href={href} target={/^https?:/.test(href) ? '_blank' : undefined} rel="noreferrer">
      {children}
    </a>
  );
}

showPage(<PortalPage facts={pageFacts()} />);
