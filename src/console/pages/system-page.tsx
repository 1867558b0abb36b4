import { PageHeader } from '../components/page-header.tsx';

export function SystemPage() {
  return <PageHeader title="System" />;
}
