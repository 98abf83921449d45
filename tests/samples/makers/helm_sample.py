"""A client for HELM that is right at times, and the run that made the sample with it.

prod_env/model_deployments.yaml names `helm_sample.FlakyClient` as the client of flaky/agent, with
the tokenizer simple/tokenizer1; prod_env/model_metadata.yaml has a model of that name.

    PYTHONPATH=. helm-run --run-entries simple_classification:model=flaky/agent --suite v1 \\
        --max-eval-instances 4 --num-train-trials 2 --local-path prod_env
"""

from helm.clients.client import Client
from helm.common.request import GeneratedOutput, RequestResult, Token


class FlakyClient(Client):
    """Says "Even" of every number."""

    def make_request(self, request):
        token = Token(text="Even", logprob=0.0)
        output = GeneratedOutput(text=token.text, logprob=0.0, tokens=[token])
        return RequestResult(
            success=True, cached=False, request_time=0.5, completions=[output], embedding=[]
        )
