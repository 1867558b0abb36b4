import { PageHeader } from '../components/page-header.tsx';

export function TokensPage() {
  return <PageHeader title="Admin tokens" />;
}
