import { PageHeader } from '../components/page-header.tsx';

export function KeysPage() {
  return <PageHeader title="Keys" />;
}
