import { PageHeader } from '../components/page-header.tsx';

export function KeyPage() {
  return <PageHeader title="Key" />;
}
