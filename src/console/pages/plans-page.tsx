import { PageHeader } from '../components/page-header.tsx';

export function PlansPage() {
  return <PageHeader title="Plans" />;
}
