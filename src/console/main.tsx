import './styles/base.css';
import { StrictMode } from 'react';
import { createRoot } from 'react-dom/client';
import { tabStorage } from './api/browser-storage.ts';
import { readProviderSignIn, takeFailedSignIn } from './api/provider-sign-in.ts';
import { SessionStore } from './api/session-store.ts';
import { App } from './app.tsx';
import { applyTheme, storedTheme } from './shell/theme.ts';

applyTheme(storedTheme());
const root = document.getElementById('root');
if (root === null) throw new Error('the page has no root element');
const provider = readProviderSignIn();
const session = new SessionStore(tabStorage, {
  hasSession: provider?.hasSession,
  failure: takeFailedSignIn(),
});
createRoot(root).render(
  <StrictMode>
    <App session={session} providerHost={provider?.host} />
  </StrictMode>,
);
