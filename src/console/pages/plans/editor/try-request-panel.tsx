import { useState } from 'react';
import { useApi } from '../../../api/api-context.tsx';
import { TextField } from '../../../components/forms/field.tsx';
import { Panel } from '../../../components/layout/panel.tsx';
import { formatNumber } from '../../../format/numbers.ts';
import styles from '../plans.module.css';
import { type PlanDraft, readDraft } from './plan-draft.ts';
import { type TriedRequest, tryRequest } from './tried-request.ts';

/** Shows which limits and which cost of the draft a request has, while its path is typed. */
export function TryRequestPanel({ draft }: { readonly draft: PlanDraft }) {
  const { pathCase } = useApi().whoami.settings;
  const [method, setMethod] = useState('GET');
  const [path, setPath] = useState('');
  const request = { method: method.trim().toUpperCase() || 'GET', path: path.trim() };
  const tried = tryRequest(readDraft(draft).terms, request, pathCase);
  return (
    <Panel title="Try a request" about="Every way in which a backend may read the path counts.">
      <div className={styles.pattern}>
        <TextField label="Method of the request" value={method} onText={setMethod} />
        <TextField label="Path of the request" placeholder="/v1/%73earch/;x" value={path} onText={setPath} />
      </div>
      <p role="status" className={styles.preview}>
        {tried === undefined
          ? path.trim() !== '' && 'Not a path, or a pattern above is not valid yet.'
          : words(tried)}
      </p>
    </Panel>
  );
}

function words({ limitIds, cost, otherReadings }: TriedRequest): string {
  const price = cost.isReported
    ? `what the backend reports, ${formatNumber(cost.units)} until then`
    : cost.units === 0
      ? 'nothing'
      : formatNumber(cost.units);
  const read = otherReadings.length === 0 ? '' : ` Also read as ${otherReadings.join(', ')}.`;
  return cost.units === 0 && !cost.isReported
    ? `Costs nothing, so that it is counted in no limit.${read}`
    : `Costs ${price}, counted in ${limitIds.join(', ')}.${read}`;
}
