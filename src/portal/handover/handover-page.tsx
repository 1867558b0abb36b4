import { useCallback, useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { CopyButton } from '../shared/copy-button.tsx';
import { instantInWords } from '../shared/instant-in-words.ts';
import '../shared/page.css';
import { showPage } from '../shared/show-page.ts';
import { Text } from '../shared/text.tsx';
import { useLeaveQuestion } from '../shared/use-leave-question.ts';
import { WORDS } from '../words.ts';
import { type OpenedLink, openLink, type RevealedLink, revealLink } from './open-link.ts';

const { handover: words } = WORDS;

/** What the page shows. The token never leaves this object and the requests: the page sends it nowhere else. */
type View =
  | { readonly kind: 'opening' | 'no_token' }
  | OpenedLink
  | Exclude<RevealedLink, { readonly kind: 'gone' }>;

function HandoverPage({ token }: { readonly token: string }) {
  const [view, setView] = useState<View>({ kind: token === '' ? 'no_token' : 'opening' });
  const [isBusy, setBusy] = useState(false);
  const card = useRef<HTMLElement>(null);
  useLeaveQuestion(isBusy || view.kind === 'revealed');
  const open = useCallback(async () => {
    setView({ kind: 'opening' });
    setView(await openLink(token));
  }, [token]);
  useEffect(() => {
    if (token !== '') void open();
  }, [open, token]);
  // The button that was pressed goes: what comes in its place is in the card.
  const keepFocus = () => card.current?.focus();
  const openAgain = () => {
    keepFocus();
    void open();
  };
  const reveal = async () => {
    if (isBusy) return;
    setBusy(true);
    const revealed = await revealLink(token);
    setBusy(false);
    if (revealed.kind !== 'revealed') keepFocus();
    if (revealed.kind === 'gone') await open();
    else setView(revealed);
  };
  return (
    <section
      ref={card}
      tabIndex={-1}
      class="card"
      // Its heading has the focus then: the secret itself must not be read aloud unasked.
      aria-live={view.kind === 'revealed' ? 'off' : 'polite'}
      aria-busy={view.kind === 'opening'}
    >
      {view.kind === 'opened' && view.state === 'open' ? (
        <Offer link={view} isBusy={isBusy} onReveal={reveal} />
      ) : view.kind === 'revealed' ? (
        <Secret name={view.name} secret={view.secret} />
      ) : (
        <Ended view={view} onAgain={openAgain} />
      )}
    </section>
  );
}

interface OfferProps {
  readonly link: Extract<OpenedLink, { readonly kind: 'opened' }>;
  readonly isBusy: boolean;
  readonly onReveal: () => void;
}

function Offer({ link: { name, note, expiresAt }, isBusy, onReveal }: OfferProps) {
  return (
    <>
      <h1>{words.title}</h1>
      <p>{words.intro(name ?? '')}</p>
      {note !== null && (
        <p class="note">
          <strong>{words.note}</strong>
          {note}
        </p>
      )}
      <p class="soft">
        {words.before} {words.validUntil(instantInWords(expiresAt))}
      </p>
      <button type="button" class="primary" onClick={onReveal} aria-disabled={isBusy}>
        <Text>{isBusy ? words.revealing : words.reveal}</Text>
      </button>
    </>
  );
}

function Secret({ name, secret }: { readonly name: string; readonly secret: string }) {
  const heading = useRef<HTMLHeadingElement>(null);
  // The button that had the focus goes: as the secret comes, not a frame later.
  useLayoutEffect(() => heading.current?.focus(), []);
  return (
    <>
      <h1 ref={heading} tabIndex={-1}>
        {words.revealed(name)}
      </h1>
      <p class="warning">{words.keepNow}</p>
      <code class="secret" translate={false} data-secret>
        {secret}
      </code>
      <CopyButton text={secret} />
      <p class="soft">{words.send}</p>
      <pre translate={false}>{'Authorization: Bearer <secret>'}</pre>
    </>
  );
}

function Ended({ view, onAgain }: { readonly view: View; readonly onAgain: () => void }) {
  if (view.kind === 'opening')
    return (
      <p class="soft">
        <Text>{words.opening}</Text>
      </p>
    );
  const mayRetry = view.kind === 'away' || view.kind === 'too_many' || view.kind === 'broken';
  return (
    <>
      <h1>{mayRetry ? words.title : words.deadTitle}</h1>
      <p>
        <Text>{sentenceOf(view)}</Text>
      </p>
      {'requestId' in view && view.requestId !== null && (
        <p class="soft">
          <Text>{words.requestId(view.requestId)}</Text>
        </p>
      )}
      {mayRetry && (
        <button type="button" onClick={onAgain}>
          {words.again}
        </button>
      )}
    </>
  );
}

function sentenceOf(view: View): string {
  switch (view.kind) {
    case 'opened':
      return deadSentence(view);
    case 'no_token':
      return words.noToken;
    case 'unknown':
      return words.unknown;
    case 'too_many':
      return words.tooMany;
    case 'broken':
      return words.lost;
    default:
      return words.away;
  }
}

function deadSentence({ state, usedAt, expiresAt }: OfferProps['link']): string {
  const { used, expired, ...others } = words.dead;
  if (state === 'used') return used(instantInWords(usedAt ?? ''));
  if (state === 'expired') return expired(instantInWords(expiresAt));
  return state in others ? others[state as keyof typeof others] : words.unknown;
}

// The part after the # reaches no server. A link that is pasted over this page is another one.
window.addEventListener('hashchange', () => location.reload());
showPage(<HandoverPage token={location.hash.slice(1)} />);
