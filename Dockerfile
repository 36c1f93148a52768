# The dashboard in a container; docs/deployment.md says how it is used. This file was written with care and not run.
#   docker build -t bert-internals .
#   docker build -t bert-internals:gpu --build-arg TORCH_INDEX=https://pypi.org/simple .
FROM python:3.11-slim

# PyTorch for the CPU takes a tenth of the room of the one with CUDA. The GPU build takes torch from PyPI, which has CUDA.
ARG TORCH_INDEX=https://download.pytorch.org/whl/cpu
# 1: with what Streamlit's login needs.
ARG LOGIN=0

# A user with the number that Hugging Face Spaces runs containers as. /data is theirs: what is kept lies there.
RUN useradd --create-home --uid 1000 dashboard \
    && mkdir /data \
    && chown dashboard:dashboard /data
WORKDIR /home/dashboard/app

# numba, scikit-learn and torch compute on several threads, for which the slim image lacks OpenMP.
RUN apt-get update \
    && apt-get install --yes --no-install-recommends libgomp1 \
    && rm -rf /var/lib/apt/lists/*

COPY requirements.txt .
RUN torch="$(sed -n 's/^\(torch==[^ ]*\).*/\1/p' requirements.txt)" \
    && pip install --no-cache-dir --index-url "$TORCH_INDEX" "$torch" \
    && if [ "$LOGIN" = 1 ]; then sed -i 's/^streamlit==/streamlit[auth]==/' requirements.txt; fi \
    && pip install --no-cache-dir -r requirements.txt

COPY --chown=dashboard:dashboard .streamlit .streamlit
COPY --chown=dashboard:dashboard assets assets
COPY --chown=dashboard:dashboard components components
COPY --chown=dashboard:dashboard dashboard dashboard

USER dashboard
# Listening on all addresses of the container makes the server careful: no paths of its own, no free models, no training.
ENV STREAMLIT_SERVER_ADDRESS=0.0.0.0 \
    STREAMLIT_SERVER_PORT=8501 \
    BERT_INTERNALS_CACHE=/data/bert-internals \
    HF_HOME=/data/huggingface \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1
VOLUME /data
EXPOSE 8501

# The first question begins to load the model, so that no visitor waits for that.
HEALTHCHECK --interval=15s --timeout=10s --start-period=120s --retries=4 \
    CMD ["python", "-c", "import os, urllib.request as r; base = os.environ.get('STREAMLIT_SERVER_BASE_URL_PATH', '').strip('/'); r.urlopen('http://127.0.0.1:' + os.environ['STREAMLIT_SERVER_PORT'] + ('/' + base if base else '') + '/ready', timeout=8)"]

CMD ["python", "-m", "streamlit", "run", "dashboard/app.py"]
